"""What a terminal types by itself: answers to queries, keys, mouse, focus and
paste as the modes of a model of vt.py say. Only text, nothing is sent here.
"""

FOREGROUND, BACKGROUND = 0xc0c0c0, 0x102030

ATTRIBUTES = {
    "DA1": "\x1b[?64;1;2;6;22c",
    "DA2": "\x1b[>41;390;0c",
    "DA3": "\x1bP!|4D4F444C\x1b\\",
    "XTVERSION": "\x1bP>|model(1)\x1b\\",
    "DECRQSS": "\x1bP0$r\x1b\\",
    "XTQMODKEYS": "\x1b[>4;0m",
    "DECREQTPARM": "\x1b[2;1;1;128;128;1;0x",
    "OSC 52": "\x1b]52;c;bW9kZWw=\x1b\\",
}


def colour(value):
    return "rgb:" + "/".join(
        f"{value >> shift & 0xff:02x}" * 2 for shift in (16, 8, 0))


def mode(vt, text):
    """DECRPM: 1 set, 2 reset, 0 unknown."""
    is_private = text.startswith("?")
    n = int(text.lstrip("?"))
    known = vt._get_one(n) if is_private else vt.ansi.get(n)
    return f"\x1b[{text};{0 if known is None else 1 if known else 2}$y"


def window(vt, text):
    what = int(text.split(";")[0])
    return {
        11: "\x1b[1t", 13: "\x1b[3;0;0t",
        14: f"\x1b[4;{vt.rows * 16};{vt.cols * 8}t",
        15: "\x1b[5;1600;2560t", 16: "\x1b[6;16;8t",
        18: f"\x1b[8;{vt.rows};{vt.cols}t", 19: "\x1b[9;100;320t",
        20: "\x1b]Lmodel\x1b\\", 21: "\x1b]lmodel\x1b\\",
    }.get(what, "")


def position(vt, text):
    row, col = vt.row + 1, vt.col + 1
    return {"5": "\x1b[0n", "6": f"\x1b[{row};{col}R",
            "?6": f"\x1b[?{row};{col}R"}.get(text, "")


def answer(vt, kind, text):
    """The answer to a query as Vt notes it, "" for none."""
    if kind in ATTRIBUTES:
        return ATTRIBUTES[kind]
    if kind == "DSR":
        return position(vt, text)
    if kind == "DECRQM":
        return mode(vt, text)
    if kind == "WINOPS":
        return window(vt, text)
    if kind == "KITTY":
        return f"\x1b[?{vt.kitty.flags}u"
    if kind == "XTGETTCAP":
        return f"\x1bP0+r{text}\x1b\\"
    if kind == "OSC 4":
        value = vt.palette.get(int(text), 0x808080)
        return f"\x1b]4;{text};{colour(value)}\x1b\\"
    if kind in ("OSC 10", "OSC 11", "OSC 12"):
        n = int(kind[4:])
        default = BACKGROUND if n == 11 else FOREGROUND
        return f"\x1b]{n};{colour(vt.dynamic.get(n, default))}\x1b\\"
    return ""


ARROWS = {"up": "A", "down": "B", "right": "C", "left": "D"}


def key(vt, name):
    """A key press: one of the arrows, `ctrl-x`, `enter`, `escape`."""
    if name in ARROWS:
        return ("\x1bO" if vt.modes[1] else "\x1b[") + ARROWS[name]
    flags = vt.kitty.flags
    if name.startswith("ctrl-"):
        c = name[5:]
        if flags & 1:
            return f"\x1b[{ord(c)};5u"
        if vt.modify_keys.get(4) == 2:
            return f"\x1b[27;5;{ord(c)}~"
        return chr(ord(c.upper()) ^ 0x40)
    plain = {"enter": "\r", "escape": "\x1b", "tab": "\t", "space": " "}[name]
    return "\x1b[27u" if flags & 1 and name == "escape" else plain


def paste(vt, text):
    return f"\x1b[200~{text}\x1b[201~" if vt.modes[2004] else text


def focus(vt, has_focus):
    return ("\x1b[I" if has_focus else "\x1b[O") if vt.modes[1004] else ""


def mouse(vt, row, col, button=0, is_move=False):
    """A press of BUTTON, or a move without any; "" unless it is asked for."""
    if not vt.mouse or (is_move and vt.mouse != 1003):
        return ""
    code = 35 if is_move else button
    if vt.encoding in (1006, 1016):
        return f"\x1b[<{code};{col + 1};{row + 1}M"
    if vt.encoding == 1015:
        return f"\x1b[{code + 32};{col + 1};{row + 1}M"
    return "\x1b[M" + chr(code + 32) + chr(col + 33) + chr(row + 33)
