"""A terminal model in Python, written from what xterm does and independent of
berth's own engine: fed with bytes it knows the screen, the history, the cursor
and every mode, and notes what a terminal would do besides: answer a query, ring,
write the clipboard, notify, print, flash. Here is the parser; vt_modes.py has
what sequences mean, vt_edit.py the editing, grid.py the cells.
"""

import codecs
import collections
import re

from grid import PLAIN, Buffer, Row
from vt_modes import ANSI, INITIAL, Modes

STRING_MAX = 1 << 20

TOKEN = re.compile(
    r"([^\x00-\x1f\x7f-\x9f]+)"
    r"|(\r\n)"
    r"|\x1b\[([<=>?]?)([0-9;:]*)([ -/]*)([@-~])"
    r"|(.)", re.S)
STRING_RUN = re.compile(r"[^\x07\x18\x1a\x1b\x9c]*")


def joined(rows):
    """Rows as lines of text."""
    lines, part = [], ""
    for row in rows:
        part += "".join(row.ch) if row.is_wrapped else row.text()
        if not row.is_wrapped:
            lines.append(part)
            part = ""
    return lines + ([part] if part else [])


class Vt(Modes):
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
        self.last = ""  # what REP repeats
        self.last_is_fresh = False  # nothing came since then
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
        return joined(self.history)

    def all_lines(self):
        """The lines of the history and the main screen, wrapped ones joined,
        blank ones at the end left out."""
        lines = joined([*self.history, *self.main.rows])
        while lines and not lines[-1]:
            lines.pop()
        return lines

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
                self.last_is_fresh = False
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
                self.last_is_fresh = False
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
        if c == "\x1b":
            self._state = self._string_end
        elif c not in "\x18\x1a":
            self._string_is_over()
        return at + 1

    def _string_end(self, text, at, end):
        """Behind an ESC: ST, or a sequence that cuts the string off."""
        self._inter = ""
        self._state = self._escape
        if text[at] != "\\":
            return at
        self._state = self._ground
        self._string_is_over()
        return at + 1

    def _string_is_over(self):
        whole, self._string = "".join(self._string), []
        self.last_is_fresh = False
        if self._string_len > STRING_MAX:
            return
        whole = re.sub(r"[\x00-\x1f\x7f]", "", whole)
        if self._kind == "]":
            self._osc(whole)
        elif self._kind == "P":
            self._dcs(whole)

    def _begin_string(self, kind):
        self._kind, self._string, self._string_len = kind, [], 0
        self._state = self._string_state

    # ---- size -------------------------------------------------------------

    def resize(self, cols, rows):
        """As xterm: no reflow; rows above the cursor go to the history, and
        come back from there.
        """
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
            while b is self.main and self.history and len(b.rows) < rows:
                b.rows.insert(0, self.history.pop())
                self.row += b is self.buffer
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
