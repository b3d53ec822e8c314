"""What escape sequences mean to the terminal model in vt.py: ESC, CSI, OSC and
DCS by tables, and the modes they set. Queries and what would disturb a person
(bell, clipboard, notification, print, flash) are noted, not done.
"""

import re

from grid import PLAIN, PROTECTED, Kitty, erased, width
from pens import apply_sgr, number, parse_colour
from vt_edit import Edit

# Modes that are only on or off, and those that a fresh terminal has on.
PRIVATE = (1, 5, 7, 8, 12, 25, 45, 66, 67, 69, 1004, 1007, 1034, 1035, 1036,
           1039, 2004, 2026, 2027, 2031, 2048, 9001)
INITIAL = {m: m in (7, 8, 25) for m in PRIVATE}
ANSI = (4, 20)
MOUSE = (9, 1000, 1001, 1002, 1003)
ENCODINGS = (1005, 1006, 1015, 1016)


class Modes(Edit):
    """Acts on what Vt.reset() makes; strings come whole."""

    # ---- ESC --------------------------------------------------------------

    def _escape_final(self, inter, c):
        if inter or c != "[":
            self.last_is_fresh = False
        if not inter:
            if c == "[":
                self._params = ""
                self._state = self._csi_state
            elif c in "]PX^_":
                self._begin_string(c)
            elif c in self.ESC:
                self.ESC[c](self)
        elif inter in ("(", ")", "*", "+"):
            slot = "()*+".index(inter)
            self.g[slot] = c if c in "0A" else "B"
        elif inter == "#" and c == "8":
            self._align()

    def _align(self):
        self.top, self.bottom = 0, self.rows - 1
        self.left, self.right = 0, self.cols - 1
        self.origin = False
        self._goto(0, 0)
        for row in self.buffer.rows:
            row.ch[:] = ["E"] * self.cols
            row.pen[:] = [PLAIN] * self.cols
            row.is_wrapped = False

    def _next_line(self):
        self._line_feed()
        self.col = self.left_edge()

    def _set_tab(self):
        self.tabs.add(self.col)

    def _lock(self, slot):
        self.gl = slot

    def _single_shift(self, slot):
        self.single = slot

    def _back_index(self):
        if self.col == self.left and self._is_inside():
            self._shift_cols(1, True)
        else:
            self._move(0, -1)

    def _forward_index(self):
        if self.col == self.right and self._is_inside():
            self._shift_cols(1, False, self.left)
        else:
            self._move(0, 1)

    def _settle(self):
        self.pending = False

    def _put_mode(self, mode, value):
        self.modes[mode] = value

    C0 = {
        0x05: lambda s: s._query("ENQ", ""),
        0x07: lambda s: s.events.append(("bell", "")),
        0x08: Edit._backspace, 0x09: Edit._tab, 0x0a: Edit._line_feed,
        0x0b: Edit._line_feed,
        0x0c: Edit._line_feed, 0x0d: Edit._return,
        0x0e: lambda s: s._lock(1), 0x0f: lambda s: s._lock(0),
    }
    ESC = {
        "7": Edit._save_cursor, "8": Edit._restore_cursor, "D": lambda s: (
            setattr(s, "pending", False), s._index()),
        "E": _next_line, "H": _set_tab, "M": Edit._reverse_index,
        "N": lambda s: s._single_shift(2), "O": lambda s: s._single_shift(3),
        "n": lambda s: s._lock(2), "o": lambda s: s._lock(3),
        "c": lambda s: s.reset(), "=": lambda s: s._put_mode(66, True),
        ">": lambda s: s._put_mode(66, False),
        "6": _back_index, "9": _forward_index,
        "V": lambda s: s._protect(1), "W": lambda s: s._protect(0),
        "Z": lambda s: s._query("DA1", "Z"),
    }

    # ---- CSI --------------------------------------------------------------

    def _csi(self, prefix, params, inter, final):
        if final == "m" and not prefix and not inter:
            self.last_is_fresh = False
            self._sgr(params)
            return
        handler = self.CSI.get((prefix, inter, final))
        if handler:
            handler(self, [number(p.split(":")[0]) for p in
                           params.split(";")])
        self.last_is_fresh = False

    def _sgr(self, params):
        key = (self.pen, params)
        pen = self._sgr_cache.get(key)
        if pen is None:
            pen = apply_sgr(self.pen, params)
            if len(self._sgr_cache) > 20000:
                self._sgr_cache.clear()
            self._sgr_cache[key] = pen
        self.pen = pen

    def _protect(self, how):
        flags = self.pen.flags & ~PROTECTED
        self.pen = self.pen._replace(flags=flags | (PROTECTED if how == 1
                                                    else 0))

    def _repeat(self, p):
        if self.last:
            n = min(max(p[0], 1), self.cols * self.rows)
            for _ in range(n):
                self._put(self.last, width(self.last))

    def _set_margins(self, p):
        top = max(p[0], 1) - 1
        bottom = (p[1] if len(p) > 1 and p[1] else self.rows) - 1
        bottom = min(bottom, self.rows - 1)
        if top < bottom:
            self.top, self.bottom = top, bottom
            self._goto(0, 0)

    def _set_side_margins(self, p):
        if not self.modes[69]:
            self._save_cursor()
            return
        left = max(p[0], 1) - 1
        right = (p[1] if len(p) > 1 and p[1] else self.cols) - 1
        right = min(right, self.cols - 1)
        if left < right:
            self.left, self.right = left, right
            self._goto(0, 0)

    def _clear_tab(self, p):
        if p[0] == 0:
            self.tabs.discard(self.col)
        elif p[0] == 3:
            self.tabs.clear()

    def _set_ansi(self, p, value):
        for m in p:
            if m in self.ansi:
                self.ansi[m] = value

    def _set_private(self, p, value):
        for m in p:
            self._set_one(m, value)

    def _set_one(self, m, value):
        if m == 6:
            self.origin = value
            self._goto(0, 0)
        elif m == 69:
            self.modes[69] = value
            if not value:
                self.left, self.right = 0, self.cols - 1
        elif m in MOUSE:
            self.mouse = m if value else 0
        elif m in ENCODINGS:
            if value or self.encoding == m:
                self.encoding = m if value else 0
        elif m in (47, 1047, 1049):
            self._switch(m, value)
        elif m == 1048:
            (self._save_cursor if value else self._restore_cursor)()
        elif m in self.modes:
            if m == 5 and self.modes[5] != value:
                self.events.append(("flash", value))
            self.modes[m] = value

    def _get_one(self, m):
        if m == 6:
            return self.origin
        if m in MOUSE:
            return self.mouse == m
        if m in ENCODINGS:
            return self.encoding == m
        if m in (47, 1047, 1049):
            return self.is_alt
        return self.modes.get(m)

    def _switch(self, m, is_alt):
        if m == 1049 and is_alt:
            self._save_cursor()
        if m == 1047 and not is_alt and self.is_alt:
            self._clear_buffer()
        self.buffer = self.alt if is_alt else self.main
        self.pending = False
        if m == 1049 and is_alt:
            self._clear_buffer()
        if m == 1049 and not is_alt:
            self._restore_cursor()

    def _clear_buffer(self):
        pen = erased(self.pen.bg)
        for row in self.buffer.rows:
            row.erase(0, self.cols, pen)
            row.is_wrapped = False

    def _save_modes(self, p):
        for m in p:
            if self._get_one(m) is not None:
                self.saved_modes[m] = self._get_one(m)

    def _restore_modes(self, p):
        for m in p:
            if m in self.saved_modes:
                self._set_one(m, self.saved_modes[m])

    def _soft_reset(self, _p):
        self.modes.update({1: False, 7: True, 25: True, 45: False, 66: False,
                           69: False})
        self.ansi[4] = False
        self.origin = False
        self.top, self.bottom = 0, self.rows - 1
        self.left, self.right = 0, self.cols - 1
        self.pen = PLAIN
        self.g, self.gl, self.single = ["B"] * 4, 0, None
        self.buffer.saved = None
        self.pending = False
        self.cursor_shape = 0
        self.modify_keys = {}
        self.buffer.kitty = Kitty()

    def _window(self, p):
        what = p[0]
        if what in (11, 13, 14, 15, 16, 18, 19, 20, 21):
            self._query("WINOPS", ";".join(map(str, p)))
        elif what == 22:
            self.title_stack.append((self.title, self.icon))
            del self.title_stack[:-10]
        elif what == 23 and self.title_stack:
            title, icon = self.title_stack.pop()
            which = p[1] if len(p) > 1 else 0
            if which in (0, 2):
                self.title = title
            if which in (0, 1):
                self.icon = icon

    def _modify(self, p):
        if len(p) > 1 and p[1]:
            self.modify_keys[p[0]] = p[1]
        else:
            self.modify_keys.pop(p[0], None)

    def _kitty_pop(self, p):
        self.kitty.pop(max(p[0], 1))

    def _kitty_set(self, p):
        self.kitty.set(p[0], p[1] if len(p) > 1 and p[1] else 1)

    def _print_media(self, p):
        self.events.append(("print", ";".join(map(str, p))))

    CSI = {
        ("", "", "@"): lambda s, p: s._shift_chars(max(p[0], 1), True),
        ("", "", "A"): lambda s, p: s._move(-max(p[0], 1), 0),
        ("", "", "B"): lambda s, p: s._move(max(p[0], 1), 0),
        ("", "", "C"): lambda s, p: s._move(0, max(p[0], 1)),
        ("", "", "D"): lambda s, p: s._move(0, -max(p[0], 1)),
        ("", "", "E"): lambda s, p: (s._move(max(p[0], 1), 0), s._return()),
        ("", "", "F"): lambda s, p: (s._move(-max(p[0], 1), 0), s._return()),
        ("", "", "G"): lambda s, p: s._goto_col(max(p[0], 1) - 1),
        ("", "", "`"): lambda s, p: s._goto_col(max(p[0], 1) - 1),
        ("", "", "H"): lambda s, p: s._goto(
            max(p[0], 1) - 1, max(p[1] if len(p) > 1 else 1, 1) - 1),
        ("", "", "I"): lambda s, p: s._tab(max(p[0], 1)),
        ("", "", "J"): lambda s, p: s._erase_display(p[0]),
        ("?", "", "J"): lambda s, p: s._erase_display(p[0], True),
        ("", "", "K"): lambda s, p: p[0] < 3 and s._erase_line(p[0]),
        ("?", "", "K"): lambda s, p: p[0] < 3 and s._erase_line(p[0], True),
        ("", "", "L"): lambda s, p: s._shift_lines(max(p[0], 1), True),
        ("", "", "M"): lambda s, p: s._shift_lines(max(p[0], 1), False),
        ("", "", "P"): lambda s, p: s._shift_chars(max(p[0], 1), False),
        ("", "", "S"): lambda s, p: (
            s._scroll_rows_up(s.top, max(p[0], 1)), s._settle()),
        ("", "", "T"): lambda s, p: len(p) == 1 and (
            s._scroll_down(s.top, s.bottom, max(p[0], 1)), s._settle()),
        ("", "", "X"): lambda s, p: s._erase_chars(max(p[0], 1)),
        ("", "", "Z"): lambda s, p: s._back_tab(max(p[0], 1)),
        ("", "", "a"): lambda s, p: s._goto_col(
            s.col - (s.left if s.origin else 0) + max(p[0], 1)),
        ("", "", "b"): _repeat,
        ("", "", "d"): lambda s, p: s._goto_row(max(p[0], 1) - 1),
        ("", "", "e"): lambda s, p: s._goto_row(
            s.row - (s.top if s.origin else 0) + max(p[0], 1)),
        ("", "", "g"): _clear_tab,
        ("", "", "h"): lambda s, p: s._set_ansi(p, True),
        ("", "", "l"): lambda s, p: s._set_ansi(p, False),
        ("?", "", "h"): lambda s, p: s._set_private(p, True),
        ("?", "", "l"): lambda s, p: s._set_private(p, False),
        ("?", "", "s"): _save_modes,
        ("?", "", "r"): _restore_modes,
        ("", "", "r"): _set_margins,
        ("", "", "s"): _set_side_margins,
        ("", "", "u"): lambda s, p: s._restore_cursor(),
        ("", "!", "p"): _soft_reset,
        ("", " ", "q"): lambda s, p: setattr(s, "cursor_shape", p[0])
        if p[0] <= 6 else None,
        ("", '"', "q"): lambda s, p: s._protect(p[0]),
        ("", "'", "}"): lambda s, p: s._shift_cols(max(p[0], 1), True),
        ("", "'", "~"): lambda s, p: s._shift_cols(max(p[0], 1), False),
        ("", "", "t"): _window,
        ("", "", "i"): _print_media,
        ("?", "", "i"): _print_media,
        (">", "", "m"): _modify,
        (">", "", "n"): lambda s, p: s.modify_keys.pop(p[0], None),
        (">", "", "u"): lambda s, p: s.kitty.push(p[0]),
        ("<", "", "u"): _kitty_pop,
        ("=", "", "u"): _kitty_set,
        ("", "", "c"): lambda s, p: p[0] == 0 and s._query("DA1", ""),
        (">", "", "c"): lambda s, p: p[0] == 0 and s._query("DA2", ""),
        ("=", "", "c"): lambda s, p: p[0] == 0 and s._query("DA3", ""),
        ("", "", "n"): lambda s, p: p[0] in (5, 6) and s._query(
            "DSR", str(p[0])),
        ("?", "", "n"): lambda s, p: s._query("DSR", f"?{p[0]}"),
        (">", "", "q"): lambda s, p: p[0] == 0 and s._query("XTVERSION", ""),
        ("", "$", "p"): lambda s, p: s._query("DECRQM", str(p[0])),
        ("?", "$", "p"): lambda s, p: s._query("DECRQM", f"?{p[0]}"),
        ("?", "", "u"): lambda s, p: s._query("KITTY", ""),
        ("?", "", "m"): lambda s, p: s._query("XTQMODKEYS", str(p[0])),
        ("", "", "x"): lambda s, p: s._query("DECREQTPARM", str(p[0])),
        ("?", "", "S"): lambda s, p: s._query("XTSMGRAPHICS", str(p[0])),
    }

    def _erase_chars(self, n):
        end = min(self.col + n, self.cols)
        self.buffer.rows[self.row].erase(self.col, end, erased(self.pen.bg))
        if end == self.cols:
            self.buffer.rows[self.row].is_wrapped = False
        self.pending = False

    # ---- strings ----------------------------------------------------------

    def _osc(self, text):
        head, _, rest = text.partition(";")
        n = int(head) if head.isdigit() and len(head) < 6 else None
        if n in (0, 1, 2):
            clean = "".join(c for c in rest if not "\x80" <= c <= "\x9f")
            if n != 1:
                self.title = clean
            if n != 2:
                self.icon = clean
        elif n == 4:
            self._set_palette(rest)
        elif n == 7:
            self.cwd = rest
        elif n == 8:
            self._set_link(rest)
        elif n is not None and 10 <= n <= 19:
            self._set_dynamic(n, rest.split(";"))
        elif n == 104:
            for i in rest.split(";") if rest else list(self.palette):
                self.palette.pop(int(i) if str(i).isdigit() else -1, None)
        elif n is not None and 110 <= n <= 119:
            self.dynamic.pop(n - 100, None)
        elif n == 52:
            where, _, data = rest.partition(";")
            if data == "?":
                self._query("OSC 52", where)
            else:
                self.events.append(("clipboard", data))
        elif n == 5 and "?" in rest:
            self._query("OSC 5", rest)
        elif n in (9, 99, 777):
            self.events.append(("notify", rest))

    def _set_palette(self, rest):
        parts = rest.split(";")
        for i, value in zip(parts[::2], parts[1::2]):
            if not i.isdigit() or int(i) > 255:
                continue
            if value == "?":
                self._query("OSC 4", i)
            elif parse_colour(value) is not None:
                self.palette[int(i)] = parse_colour(value)

    def _set_dynamic(self, n, values):
        for value in values:
            if n > 19:
                return
            if value == "?":
                self._query(f"OSC {n}", "")
            elif parse_colour(value) is not None:
                self.dynamic[n] = parse_colour(value)
            n += 1

    def _set_link(self, rest):
        params, _, uri = rest.partition(";")
        found = dict(p.partition("=")[::2] for p in params.split(":"))
        link = (found.get("id", ""), uri) if uri else None
        self.pen = self.pen._replace(link=link)

    def _dcs(self, text):
        m = re.match(r"([0-9;]*)([ -/]*)([@-~])(.*)", text, re.S)
        if not m:
            return
        if (m[2], m[3]) == ("+", "q"):
            self._query("XTGETTCAP", m[4])
        elif (m[2], m[3]) == ("$", "q"):
            self._query("DECRQSS", m[4])

    def _query(self, kind, text):
        self.queries.append((kind, text))
        if self.answer:
            self.answer(kind, text)
