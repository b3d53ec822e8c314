"""Says whether two terminals of vt.py show the same and behave alike, and if not
where the first differences are. What nobody could see does not count: the
foreground of a blank, say.
"""

from grid import (
    DEFAULT, INVERSE, ITALIC, NAMES, OVERLINE, RGB, STRIKE, Saved,
)

# What makes the foreground of a blank visible.
SEEN_ON_BLANK = INVERSE | STRIKE | OVERLINE


def seen(ch, pen):
    """A cell as somebody sees it who knows no history of it."""
    if ch != " ":
        return ch, pen
    flags = pen.flags
    if pen.underline or flags & SEEN_ON_BLANK:
        return ch, pen._replace(flags=flags & ~ITALIC)
    return ch, pen._replace(fg=DEFAULT, ul_colour=DEFAULT, flags=0)


def colour(c):
    if c == DEFAULT:
        return "default"
    return f"#{c & 0xffffff:06x}" if c & RGB else str(c)


def pen_text(pen):
    names = [n for i, n in enumerate(NAMES) if pen.flags >> i & 1]
    if pen.underline:
        names.append(f"underline {pen.underline} {colour(pen.ul_colour)}")
    if pen.link:
        names.append(f"link {pen.link}")
    return f"{colour(pen.fg)} on {colour(pen.bg)} {' '.join(names)}".strip()


def row_difference(what, a, b):
    """One line about the first cell that differs, or None."""
    if a.ch == b.ch and a.pen == b.pen:
        return None
    if len(a.ch) != len(b.ch):
        return f"{what}: {len(a.ch)} and {len(b.ch)} columns"
    for col, cells in enumerate(zip(a.ch, a.pen, b.ch, b.pen)):
        one, two = seen(*cells[:2]), seen(*cells[2:])
        if one != two:
            return (f"{what} column {col}: {one[0]!r} {pen_text(one[1])}"
                    f" | {two[0]!r} {pen_text(two[1])}\n"
                    f"    {a.text()!r}\n    {b.text()!r}")
    return None


def rows_differences(what, rows_a, rows_b):
    found = []
    if len(rows_a) != len(rows_b):
        found.append(f"{what}: {len(rows_a)} and {len(rows_b)} rows")
    for i, (a, b) in enumerate(zip(rows_a, rows_b)):
        said = row_difference(f"{what} {i}", a, b)
        if said:
            found.append(said)
        elif a.is_wrapped != b.is_wrapped:
            found.append(f"{what} {i} goes on below: {a.is_wrapped} |"
                         f" {b.is_wrapped}\n    {a.text()!r}")
    return found


def state(vt):
    """Everything but cells, by name."""
    saved = {
        name: (b.saved or Saved()).key()
        for name, b in (("main", vt.main), ("alt", vt.alt))
    }
    found = {
        "size": (vt.cols, vt.rows),
        "screen": "alternate" if vt.is_alt else "main",
        "cursor": (vt.row, vt.col),
        "pending wrap": vt.pending,
        "pen": vt.pen,
        "charsets": (tuple(vt.g), vt.gl, vt.single),
        "origin": vt.origin,
        "margins": (vt.top, vt.bottom, vt.left, vt.right),
        "mouse": (vt.mouse, vt.encoding),
        "cursor shape": vt.cursor_shape,
        "modify keys": vt.modify_keys,
        "tabs": sorted(vt.tabs),
        "title": vt.title,
        "palette": vt.palette,
        "dynamic colours": vt.dynamic,
        "main kitty flags": vt.main.kitty.flags,
        "alternate kitty flags": vt.alt.kitty.flags,
        "saved cursor": saved["alt" if vt.is_alt else "main"],
    }
    if vt.is_alt:
        found["saved cursor of main"] = saved["main"]
    found.update({f"mode {m}": v for m, v in vt.modes.items() if m != 2026})
    found.update({f"ANSI mode {m}": v for m, v in vt.ansi.items()})
    return found


def state_differences(a, b, ignore=()):
    one, two = state(a), state(b)
    if a.last_is_fresh:
        # after anything else REP means nothing, in tmux and by ECMA-48
        one["character to repeat"], two["character to repeat"] = a.last, b.last
    return [
        f"{name}: {one[name]!r} | {two.get(name)!r}"
        for name in one
        if one[name] != two.get(name) and name not in ignore
    ]


def differences(a, b, ignore=()):
    """All that differs between A and B, as lines of text; [] when equal."""
    found = state_differences(a, b, ignore)
    found += rows_differences("row", a.buffer.rows, b.buffer.rows)
    if a.is_alt and b.is_alt:
        found += rows_differences("row of main", a.main.rows, b.main.rows)
    return found


# What a terminal does after its own shell has been given back to it.
CLEAN_IGNORES = ("cursor", "pending wrap", "title", "saved cursor", "tabs")


def unclean(vt, fresh):
    """What is still on in VT beside a fresh terminal of the same size."""
    return state_differences(vt, fresh, CLEAN_IGNORES)

