"""A terminal model in Python, written from what xterm does and independent of
berth's own engine: fed with bytes it knows the screen, the history, the cursor
and every mode, and notes what a terminal would do besides: answer a query, ring,
write the clipboard, notify, print, flash.
"""

import base64
import codecs
import collections
import re

from grid import (
    BLINK, BOLD, CONCEAL, DEFAULT, FAINT, INVERSE, ITALIC, OVERLINE, PLAIN,
    PROTECTED, RGB, STRIKE, Buffer, Kitty, Row, Saved, erased, width,
)

# Modes that are only on or off, those that a fresh terminal has on.
PRIVATE = (1, 5, 7, 8, 12, 25, 45, 66, 67, 69, 1004, 1007, 1034, 1035, 1036,
           1039, 2004, 2026, 2027, 2031, 2048, 9001)
INITIAL = {m: m in (7, 8, 25) for m in PRIVATE}
ANSI = (4, 20)
MOUSE = (9, 1000, 1001, 1002, 1003)
ENCODINGS = (1005, 1006, 1015, 1016)

LINES = dict(zip(
    "`abcdefghijklmnopqrstuvwxyz{|}~_",
    "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·\u00a0",
))

STRING_MAX = 1 << 20

TOKEN = re.compile(
    r"([^\x00-\x1f\x7f-\x9f]+)"
    r"|(\r\n)"
    r"|\x1b\[([<=>?]?)([0-9;:]*)([ -/]*)([@-~])"
    r"|(.)", re.S)
STRING_RUN = re.compile(r"[^\x07\x18\x1a\x1b\x9c]*")
PARAM_MAX = 65535


def number(text, default=0):
    return min(int(text), PARAM_MAX) if text else default


class Vt:
    """One terminal of COLS x ROWS. `answer`, when set, is called with the kind
    and the text of each query; `queries` and `events` list all that came."""

    def __init__(self, cols=80, rows=24, history=10000):
        self.cols, self.rows = cols, rows
        self.history = collections.deque(maxlen=history)
        self.n_scrolled = 0  # lines that ever went to the history
        self.queries = []
        self.events = []
        self.answer = None
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._sgr_cache = {}
        self.reset()

    def reset(self):
        """RIS."""
        self.main = Buffer(self.cols, self.rows)
        self.alt = Buffer(self.cols, self.rows)
        self.buffer = self.main
        self.row = self.col = 0
        self.pending = False
        self.pen = PLAIN
        self.g, self.gl, self.single = ["B"] * 4, 0, None
        self.origin = False
        self.top, self.bottom = 0, self.rows - 1
        self.left, self.right = 0, self.cols - 1
        self.modes = dict(INITIAL)
        self.ansi = dict.fromkeys(ANSI, False)
        self.saved_modes = {}
        self.mouse = self.encoding = 0
        self.cursor_shape = 0
        self.modify_keys = {}
        self.tabs = set(range(0, self.cols, 8))
        self.title = self.icon = ""
        self.title_stack = []
        self.cwd = ""
        self.palette, self.dynamic = {}, {}
        self.last = ""
        self._state = self._ground
        self._params = self._inter = ""
        self._string, self._string_len = [], 0
        self._kind = ""

    # ---- what it shows ----------------------------------------------------

    @property
    def is_alt(self):
        return self.buffer is self.alt

    @property
    def kitty(self):
        return self.buffer.kitty

    def lines(self):
        """The screen as text, a string a row."""
        return [row.text() for row in self.buffer.rows]

    def text(self):
        return "\n".join(self.lines()).rstrip("\n")

    def history_lines(self):
        """The history as text, wrapped lines joined again."""
        lines, part = [], ""
        for row in self.history:
            part += "".join(row.ch) if row.is_wrapped else row.text()
            if not row.is_wrapped:
                lines.append(part)
                part = ""
        return lines + ([part] if part else [])

    def all_text(self):
        """History and main screen."""
        return "\n".join([row.text() for row in self.history]
                         + [row.text() for row in self.main.rows])

    def is_ground(self):
        return self._state == self._ground and not self._utf8.getstate()[0]

    # ---- input ------------------------------------------------------------

    def feed(self, data):
        text = self._utf8.decode(data)
        at, end = 0, len(text)
        while at < end:
            at = self._state(text, at, end)

    def _ground(self, text, at, end):
        match = TOKEN.match
        while at < end:
            m = match(text, at)
            at = m.end()
            kind = m.lastindex
            if kind == 1:
                self._print(m[1])
            elif kind == 2:
                self.col = self.left if self.col >= self.left else 0
                self.pending = False
                if self.row < self.bottom:
                    self.row += 1
                else:
                    self._index()
            elif kind == 6:
                self._csi(m[3], m[4], m[5], m[6])
            else:
                self._control(m[7])
                if self._state != self._ground:
                    return at
        return at

    def _control(self, c):
        """C0, C1 and the beginning of everything longer."""
        n = ord(c)
        if n == 0x1b:
            self._inter = ""
            self._state = self._escape
        elif n >= 0x80:
            self._escape_final("", chr(n - 0x40))
        else:
            handler = self.C0.get(n)
            if handler:
                handler(self)

    def _c0_inside(self, c):
        """A control inside of a sequence; False if it ends it."""
        if c in "\x18\x1a":
            self._state = self._ground
        elif c == "\x1b" or "\x80" <= c <= "\x9f":
            self._state = self._ground
            self._control(c)
        elif c < " ":
            self._control(c)
        else:
            return False
        return True

    def _escape(self, text, at, end):
        while at < end:
            c = text[at]
            at += 1
            if c == "\x7f":
                continue
            if self._c0_inside(c):
                if self._state != self._escape:
                    return at
            elif c <= "/":
                self._inter += c
            elif c < "\x7f":
                self._state = self._ground
                self._escape_final(self._inter, c)
                return at
            else:  # no part of a sequence: stands for itself
                self._state = self._ground
                return at - 1
        return at

    def _csi_state(self, text, at, end):
        while at < end:
            c = text[at]
            at += 1
            if self._c0_inside(c):
                if self._state != self._csi_state:
                    return at
            elif c <= "?":
                self._params += c
            elif c < "\x7f":
                self._state = self._ground
                self._csi_text(self._params, c)
                return at
        return at

    def _csi_text(self, params, final):
        m = re.fullmatch(r"([<=>?]?)([0-9;:]*)([ -/]*)", params)
        if m and len(params) < 4096:
            self._csi(m[1], m[2], m[3], final)

    def _string_state(self, text, at, end):
        run = STRING_RUN.match(text, at)
        if run.end() > at:
            self._string_len += run.end() - at
            if self._string_len <= STRING_MAX:
                self._string.append(run[0])
            return run.end()
        c = text[at]
        if c == "\x07" and self._kind != "]":
            self._string_len += 1
            self._string.append(c)
            return at + 1
        self._state = self._ground
        if c == "\x1b":  # ST begins, or something else that ends it as well
            self._string_is_over(True)
            self._inter = ""
            self._state = self._escape
        elif c not in "\x18\x1a":
            self._string_is_over(True)
        return at + 1

    def _string_is_over(self, is_whole):
        whole, self._string = "".join(self._string), []
        if not is_whole or self._string_len > STRING_MAX:
            return
        whole = re.sub(r"[\x00-\x1f\x7f]", "", whole)
        if self._kind == "]":
            self._osc(whole)
        elif self._kind == "P":
            self._dcs(whole)

    def _begin_string(self, kind):
        self._kind, self._string, self._string_len = kind, [], 0
        self._state = self._string_state

    # ---- characters -------------------------------------------------------

    def left_edge(self):
        """Where CR goes."""
        return self.left if self.col >= self.left else 0

    def limit(self):
        """Behind the last column for text of the present row."""
        return self.right + 1 if self.col <= self.right else self.cols

    def _translate(self, text):
        if self.single is not None:
            first, self.single = self.g[self.single], None
            if first != "B":
                head = self._in_set(first, text[0])
                return head + self._translate(text[1:]) if text[1:] else head
        name = self.g[self.gl]
        return text if name == "B" else self._in_set(name, text)

    @staticmethod
    def _in_set(name, text):
        if name == "0":
            return "".join(LINES.get(c, c) for c in text)
        return text.replace("#", "£") if name == "A" else text

    def _print(self, text):
        if self.g[self.gl] != "B" or self.single is not None:
            text = self._translate(text)
        if not text.isascii():
            self._print_wide(text)
        elif self.ansi[4]:
            for c in text:
                self._put(c, 1)
        else:
            self._print_run(text)

    def _print_run(self, text):
        """Characters of one column each, no insert mode."""
        at, end = 0, len(text)
        self.last = text[-1]
        while at < end:
            if self.pending:
                if self.modes[7]:
                    self._wrap()
                else:
                    self.pending = False
            limit = self.limit()
            n = min(limit - self.col, end - at)
            if n < end - at and not self.modes[7]:
                # all the rest lands in the last column, one after the other
                self._place(text[at:at + n - 1] + text[-1])
                self.col, self.pending = limit - 1, True
                return
            self._place(text[at:at + n])
            at += n
            self.col += n
            if self.col >= limit:
                self.col, self.pending = limit - 1, True

    def _place(self, text):
        row, col, n = self.buffer.rows[self.row], self.col, len(text)
        ch = row.ch
        if ch[col] == "":
            row.mend(col)
        if col + n < self.cols and ch[col + n] == "":
            row.mend(col + n)
        ch[col:col + n] = text
        row.pen[col:col + n] = [self.pen] * n
        if col + n >= self.cols:
            row.is_wrapped = False

    def _print_wide(self, text):
        for c in text:
            n = width(c)
            if n:
                self._put(c, n)
            else:
                self._combine(c)

    def _put(self, c, n):
        if self.pending:
            if self.modes[7]:
                self._wrap()
            self.pending = False
        limit = self.limit()
        if n == 2 and self.col + 2 > limit:
            if limit - (self.left if limit == self.right + 1 else 0) < 2:
                return  # no room for it in any row
            if self.modes[7]:
                self._wrap()
                limit = self.limit()
            else:
                self.col = limit - 2
        self.last = c
        row = self.buffer.rows[self.row]
        if self.ansi[4]:
            row.insert(self.col, n, limit, erased(self.pen.bg))
        col = self.col
        row.mend(col)
        row.mend(col + n)
        row.ch[col], row.pen[col] = c, self.pen
        if n == 2:
            row.ch[col + 1], row.pen[col + 1] = "", self.pen
        if col + n >= self.cols:
            row.is_wrapped = False
        self.col += n
        if self.col >= limit:
            self.col, self.pending = limit - 1, True

    def _combine(self, c):
        """Joins the character that stands before the cursor."""
        row, col = self.buffer.rows[self.row], self.col
        if not self.pending:
            col -= 1
        if col >= 0 and row.ch[col] == "":
            col -= 1
        if col >= 0:
            joined = row.ch[col] + c
            if len(joined.encode("utf-8", "surrogatepass")) <= 31:
                row.ch[col] = joined

    def _wrap(self):
        self.pending = False
        if self.limit() == self.cols:
            self.buffer.rows[self.row].is_wrapped = True
        self.col = self.left_edge()
        self._index()

    # ---- lines ------------------------------------------------------------

    def _index(self):
        if self.row == self.bottom:
            if self.left <= self.col <= self.right:
                self._scroll_up(self.top, self.bottom, 1)
        elif self.row < self.rows - 1:
            self.row += 1

    def _line_feed(self):
        self.pending = False
        self._index()
        if self.ansi[20]:
            self.col = self.left_edge()

    def _reverse_index(self):
        self.pending = False
        if self.row == self.top:
            if self.left <= self.col <= self.right:
                self._scroll_down(self.top, self.bottom, 1)
        elif self.row > 0:
            self.row -= 1

    def _is_full_width(self):
        return self.left == 0 and self.right == self.cols - 1

    def _scroll_up(self, top, bottom, n, to_history=True):
        """Rows [top, bottom] go up by N."""
        rows, pen = self.buffer.rows, erased(self.pen.bg)
        if n == 1 and bottom - top == self.rows - 1 and to_history and (
                self._is_full_width()):
            first = rows.pop(0)
            if self.buffer is self.main:
                self.history.append(first)
                self.n_scrolled += 1
            rows.append(Row(self.cols, pen))
            return
        n = min(n, bottom - top + 1)
        if not self._is_full_width():
            self._scroll_box(top, bottom, n, pen)
            return
        if to_history and top == 0 and self.buffer is self.main:
            self.history.extend(rows[:n])
            self.n_scrolled += n
        elif top > 0:
            rows[top - 1].is_wrapped = False
        rows[top:bottom + 1] = rows[top + n:bottom + 1] + [
            Row(self.cols, pen) for _ in range(n)]
        if bottom - n >= top:
            rows[bottom - n].is_wrapped &= bottom == self.rows - 1 and n == 1

    def _scroll_down(self, top, bottom, n):
        rows, pen = self.buffer.rows, erased(self.pen.bg)
        n = min(n, bottom - top + 1)
        if not self._is_full_width():
            self._scroll_box(top, bottom, -n, pen)
            return
        rows[top:bottom + 1] = [
            Row(self.cols, pen) for _ in range(n)
        ] + rows[top:bottom + 1 - n]
        rows[bottom].is_wrapped = False
        if top > 0:
            rows[top - 1].is_wrapped = False

    def _scroll_box(self, top, bottom, n, pen):
        """Inside of margins left and right; N < 0 scrolls down."""
        left, right = self.left, self.right + 1
        rows = self.buffer.rows
        order = range(top, bottom + 1)
        for i in order if n > 0 else reversed(order):
            row = rows[i]
            row.mend(left)
            row.mend(right)
            if top <= i + n <= bottom:
                source = rows[i + n]
                source.mend(left)
                source.mend(right)
                row.ch[left:right] = source.ch[left:right]
                row.pen[left:right] = source.pen[left:right]
            else:
                row.erase(left, right, pen)

    # ---- cursor -----------------------------------------------------------

    def _goto(self, row, col):
        if self.origin:
            row = min(row + self.top, self.bottom)
            col = min(col + self.left, self.right)
        self.row = max(0, min(row, self.rows - 1))
        self.col = max(0, min(col, self.cols - 1))
        self.pending = False

    def _goto_col(self, col):
        row = self.row - (self.top if self.origin else 0)
        self._goto(row, col)

    def _goto_row(self, row):
        col = self.col - (self.left if self.origin else 0)
        self._goto(row, col)

    def _move(self, rows, cols):
        """Relative, stopped by the margins."""
        self.pending = False
        if rows < 0:
            stop = self.top if self.row >= self.top else 0
            self.row = max(self.row + rows, stop)
        elif rows > 0:
            stop = self.bottom if self.row <= self.bottom else self.rows - 1
            self.row = min(self.row + rows, stop)
        if cols < 0:
            stop = self.left if self.col >= self.left else 0
            self.col = max(self.col + cols, stop)
        elif cols > 0:
            stop = self.right if self.col <= self.right else self.cols - 1
            self.col = min(self.col + cols, stop)

    def _backspace(self):
        if self.modes[45] and self.modes[7]:
            if self.pending:
                self.pending = False
                return
            if self.col == self.left and self.row > self.top:
                self.row -= 1
                self.col = self.right
                return
        self._move(0, -1)

    def _return(self):
        self.col, self.pending = self.left_edge(), False

    def _tab(self, n=1):
        stop = self.right if self.col <= self.right else self.cols - 1
        later = sorted(t for t in self.tabs if t > self.col)
        self.col = min(later[n - 1] if len(later) >= n else stop, stop)

    def _back_tab(self, n):
        stop = self.left if self.origin else 0
        before = sorted((t for t in self.tabs if t < self.col), reverse=True)
        self.pending = False
        self.col = max(before[n - 1] if len(before) >= n else stop, stop)

    def _save_cursor(self):
        s = self.buffer.saved = Saved()
        s.row, s.col, s.pending = self.row, self.col, self.pending
        s.pen, s.origin = self.pen, self.origin
        s.g, s.gl = self.g[:], self.gl

    def _restore_cursor(self):
        s = self.buffer.saved or Saved()
        self.pen, self.origin = s.pen, s.origin
        self.g, self.gl, self.single = s.g[:], s.gl, None
        self.row = min(s.row, self.rows - 1)
        self.col = min(s.col, self.cols - 1)
        self.pending = s.pending

    # ---- erase and edit ---------------------------------------------------

    def _erase_line(self, how, keep=False):
        row, pen = self.buffer.rows[self.row], erased(self.pen.bg)
        start = self.col if how == 0 else 0
        end = self.col + 1 if how == 1 else self.cols
        row.erase(start, end, pen, keep)
        self.pending = False
        if how != 1:
            row.is_wrapped = False

    def _erase_display(self, how, keep=False):
        pen = erased(self.pen.bg)
        if how == 3:
            if not keep:
                self.history.clear()
            return
        if how not in (0, 1, 2):
            return
        if how != 2:
            self._erase_line(how, keep)
        self.pending = False
        which = {0: range(self.row + 1, self.rows), 1: range(self.row),
                 2: range(self.rows)}[how]
        for i in which:
            self.buffer.rows[i].erase(0, self.cols, pen, keep)
            self.buffer.rows[i].is_wrapped = False

    def _is_inside(self):
        return (self.top <= self.row <= self.bottom
                and self.left <= self.col <= self.right)

    def _shift_chars(self, n, is_insert):
        if not self.left <= self.col <= self.right:
            return
        row, pen = self.buffer.rows[self.row], erased(self.pen.bg)
        (row.insert if is_insert else row.delete)(
            self.col, n, self.right + 1, pen)
        row.is_wrapped = False
        self.pending = False

    def _shift_lines(self, n, is_insert):
        if not self._is_inside():
            return
        if is_insert:
            self._scroll_down(self.row, self.bottom, n)
        else:
            self._scroll_up(self.row, self.bottom, n, False)
        self._return_to_left()

    def _return_to_left(self):
        self.col, self.pending = self.left, False

    def _shift_cols(self, n, is_insert, col=None):
        if not self._is_inside():
            return
        pen, at = erased(self.pen.bg), self.col if col is None else col
        for i in range(self.top, self.bottom + 1):
            row = self.buffer.rows[i]
            (row.insert if is_insert else row.delete)(
                at, n, self.right + 1, pen)
        self.pending = False

    # ---- ESC --------------------------------------------------------------

    def _escape_final(self, inter, c):
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

    def _put_mode(self, mode, value):
        self.modes[mode] = value

    C0 = {
        0x05: lambda s: s._query("ENQ", ""),
        0x07: lambda s: s.events.append(("bell", "")),
        0x08: _backspace, 0x09: _tab, 0x0a: _line_feed, 0x0b: _line_feed,
        0x0c: _line_feed, 0x0d: _return,
        0x0e: lambda s: s._lock(1), 0x0f: lambda s: s._lock(0),
    }
    ESC = {
        "7": _save_cursor, "8": _restore_cursor, "D": lambda s: (
            setattr(s, "pending", False), s._index()),
        "E": _next_line, "H": _set_tab, "M": _reverse_index,
        "N": lambda s: s._single_shift(2), "O": lambda s: s._single_shift(3),
        "n": lambda s: s._lock(2), "o": lambda s: s._lock(3),
        "c": reset, "=": lambda s: s._put_mode(66, True),
        ">": lambda s: s._put_mode(66, False),
        "6": _back_index, "9": _forward_index,
        "V": lambda s: s._protect(1), "W": lambda s: s._protect(0),
        "Z": lambda s: s._query("DA1", "Z"),
    }

    # ---- CSI --------------------------------------------------------------

    def _csi(self, prefix, params, inter, final):
        if final == "m" and not prefix and not inter:
            self._sgr(params)
            return
        handler = self.CSI.get((prefix, inter, final))
        if handler:
            handler(self, [number(p.split(":")[0]) for p in
                           params.split(";")])

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
        ("", "", "S"): lambda s, p: s._scroll_up(
            s.top, s.bottom, max(p[0], 1)),
        ("", "", "T"): lambda s, p: len(p) == 1 and s._scroll_down(
            s.top, s.bottom, max(p[0], 1)),
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

    # ---- size -------------------------------------------------------------

    def resize(self, cols, rows):
        """As xterm: no reflow; rows above the cursor go to the history."""
        for b in (self.main, self.alt):
            row = self.row if b is self.buffer else rows - 1
            extra = max(0, min(row, len(b.rows) - 1) - rows + 1)
            if b is self.main:
                self.history.extend(b.rows[:extra])
                self.n_scrolled += extra
            del b.rows[:extra]
            if b is self.buffer:
                self.row -= extra
            del b.rows[rows:]
            while len(b.rows) < rows:
                b.rows.append(Row(self.cols))
            for line in b.rows:
                line.fit(cols)
        for i in range(self.cols, cols):
            if i % 8 == 0:
                self.tabs.add(i)
        self.tabs = {t for t in self.tabs if t < cols}
        self.cols, self.rows = cols, rows
        self.top, self.bottom = 0, rows - 1
        self.left, self.right = 0, cols - 1
        self.row = min(self.row, rows - 1)
        self.col = min(self.col, cols - 1)
        self.pending = False


# ---- SGR and colours --------------------------------------------------------

FLAG_ON = {1: BOLD, 2: FAINT, 3: ITALIC, 5: BLINK, 6: BLINK, 7: INVERSE,
           8: CONCEAL, 9: STRIKE, 53: OVERLINE}
FLAG_OFF = {22: BOLD | FAINT, 23: ITALIC, 25: BLINK, 27: INVERSE, 28: CONCEAL,
            29: STRIKE, 55: OVERLINE}


def apply_sgr(pen, params):
    """The pen after `CSI params m`."""
    fg, bg, flags, ul, ul_colour, link = pen
    parts = params.split(";")
    i = 0
    while i < len(parts):
        sub = parts[i].split(":")
        n = number(sub[0])
        i += 1
        if n == 0:
            fg = bg = ul_colour = DEFAULT
            flags, ul = flags & PROTECTED, 0
        elif n in FLAG_ON:
            flags |= FLAG_ON[n]
        elif n in FLAG_OFF:
            flags &= ~FLAG_OFF[n]
        elif n == 4:
            style = number(sub[1], 0) if len(sub) > 1 else 1
            ul = style if style <= 5 else ul
        elif n == 21:
            ul = 2
        elif n == 24:
            ul = 0
        elif 30 <= n <= 37:
            fg = n - 30
        elif 40 <= n <= 47:
            bg = n - 40
        elif 90 <= n <= 97:
            fg = n - 82
        elif 100 <= n <= 107:
            bg = n - 92
        elif n in (39, 49, 59):
            fg = DEFAULT if n == 39 else fg
            bg = DEFAULT if n == 49 else bg
            ul_colour = DEFAULT if n == 59 else ul_colour
        elif n in (38, 48, 58):
            colour, used = extended(sub, parts[i:])
            i += used
            if colour is not None:
                fg = colour if n == 38 else fg
                bg = colour if n == 48 else bg
                ul_colour = colour if n == 58 else ul_colour
    return type(pen)(fg, bg, flags, ul, ul_colour, link)


def extended(sub, rest):
    """(colour or None, parts used) of SGR 38, 48, 58 in either spelling."""
    if len(sub) > 1:
        kind, values = number(sub[1]), sub[2:]
        if kind == 5 and values:
            n = number(values[0])
            return (n if n < 256 else None), 0
        if kind == 2 and len(values) >= 3:
            # with an empty or given colour space there are four
            rgb = values[1:4] if len(values) > 3 else values
            return rgb_of(rgb), 0
        return None, 0
    kind = number(rest[0]) if rest else 0
    if kind == 5:
        n = number(rest[1]) if len(rest) > 1 else 0
        return (n if n < 256 else None), 2
    if kind == 2:
        return (rgb_of(rest[1:4]) if len(rest) > 3 else None), 4
    return None, 1 if rest else 0


def rgb_of(values):
    r, g, b = (number(v) for v in values)
    if max(r, g, b) > 255:
        return None
    return RGB | r << 16 | g << 8 | b


COLOUR_NAMES = {"black": 0, "red": 0xff0000, "green": 0x00ff00,
                "blue": 0x0000ff, "white": 0xffffff, "yellow": 0xffff00,
                "cyan": 0x00ffff, "magenta": 0xff00ff}


def parse_colour(text):
    """0xrrggbb of `#rgb`, `#rrggbb`..., `rgb:r/g/b`; None when it is none."""
    m = re.fullmatch(r"rgb:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
                     r"/([0-9a-fA-F]{1,4})", text)
    if m:
        out = 0
        for part in m.groups():
            value = int(part, 16) * 255 // (16 ** len(part) - 1)
            out = out << 8 | value
        return out
    m = re.fullmatch(r"#([0-9a-fA-F]+)", text)
    if m and len(m[1]) in (3, 6, 9, 12):
        n = len(m[1]) // 3
        out = 0
        for i in range(3):
            digits = m[1][i * n:(i + 1) * n]
            out = out << 8 | int((digits + "0")[:2], 16)
        return out
    return COLOUR_NAMES.get(text.lower())


def clipboard_text(data):
    """What an OSC 52 put into the clipboard."""
    return base64.b64decode(data + "===")
