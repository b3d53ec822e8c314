"""The grid of the terminal model in vt.py: rows of cells, pens, widths of
characters and the editing of rows. No parsing. A cell is a character (text of
one cluster, "" for the right half of a wide one) and a pen.
"""

import collections
import functools
import unicodedata

BOLD, FAINT, ITALIC, BLINK, INVERSE, CONCEAL, STRIKE, OVERLINE, PROTECTED = (
    1 << i for i in range(9)
)
NAMES = ("bold", "faint", "italic", "blink", "inverse", "conceal", "strike",
         "overline", "protected")
DEFAULT = -1
RGB = 1 << 24

# Colours are DEFAULT, a number of the palette or RGB | 0xrrggbb; link is
# None or (id, uri).
Pen = collections.namedtuple("Pen", "fg bg flags underline ul_colour link")
PLAIN = Pen(DEFAULT, DEFAULT, 0, 0, DEFAULT, None)

CLUSTER_BYTES = 31  # longer clusters are compared, not kept, up to this


@functools.lru_cache(maxsize=None)
def erased(bg):
    """The pen of a cell that was erased while the background was BG."""
    return PLAIN._replace(bg=bg)


# Cf with a glyph of their own: signs around Arabic and Kaithi numbers.
SIGNS = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD,
         0x110CD}


@functools.lru_cache(maxsize=65536)
def width(c):
    """Columns of one code point: 0, 1 or 2, as wcwidth() of glibc has it, which
    is what xterm and tmux ask. Ambiguous ones are narrow."""
    n = ord(c)
    if n < 0x300 or n in SIGNS:
        return 1
    if 0x1160 <= n <= 0x11FF or 0xD7B0 <= n <= 0xD7FB:
        return 0  # vowels and finals of Hangul join the consonant before
    kind = unicodedata.category(c)
    if kind in ("Mn", "Me", "Cf", "Zl", "Zp"):
        return 0
    if kind == "Cn":  # what Python says about the width of these is wrong
        return 1
    if 0x3248 <= n <= 0x324F or 0x4DC0 <= n <= 0x4DFF:
        return 2
    return 2 if unicodedata.east_asian_width(c) in "WF" else 1


class Row:
    """Two lists of the same length; is_wrapped: the text goes on below."""

    __slots__ = ("ch", "pen", "is_wrapped")

    def __init__(self, cols, pen=PLAIN):
        self.ch = [" "] * cols
        self.pen = [pen] * cols
        self.is_wrapped = False

    def copy(self):
        row = Row(0)
        row.ch, row.pen = self.ch[:], self.pen[:]
        row.is_wrapped = self.is_wrapped
        return row

    def text(self):
        return "".join(self.ch).rstrip(" ")

    def mend(self, at):
        """Blanks the half of a wide character that a change at the boundary
        left of column AT cuts through."""
        ch = self.ch
        if 0 < at < len(ch) and ch[at] == "":
            ch[at - 1] = ch[at] = " "

    def erase(self, start, end, pen, keep_protected=False):
        if start >= end:
            return
        self.mend(start)
        self.mend(end)
        if keep_protected:
            for i in range(start, end):
                if not self.pen[i].flags & PROTECTED:
                    self.ch[i], self.pen[i] = " ", pen
            return
        self.ch[start:end] = [" "] * (end - start)
        self.pen[start:end] = [pen] * (end - start)

    def insert(self, at, n, right, pen):
        """Shifts [at, right) by N to the right, blanks come in."""
        n = min(n, right - at)
        self.mend(at)
        self.mend(right)
        self.mend(right - n)
        self.ch[at:right] = [" "] * n + self.ch[at:right - n]
        self.pen[at:right] = [pen] * n + self.pen[at:right - n]

    def delete(self, at, n, right, pen):
        """Shifts [at + n, right) to the left, blanks come in."""
        n = min(n, right - at)
        self.mend(at)
        self.mend(at + n)
        self.mend(right)
        self.ch[at:right] = self.ch[at + n:right] + [" "] * n
        self.pen[at:right] = self.pen[at + n:right] + [pen] * n

    def fit(self, cols):
        """Cuts or fills it to another width, as terminals without reflow."""
        if cols < len(self.ch):
            self.mend(cols)
            del self.ch[cols:], self.pen[cols:]
        else:
            more = cols - len(self.ch)
            self.ch += [" "] * more
            self.pen += [PLAIN] * more


class Saved:
    """What DECSC keeps."""

    def __init__(self):
        self.row = self.col = 0
        self.pending = False
        self.pen = PLAIN
        self.origin = False
        self.g = ["B"] * 4
        self.gl = 0

    def key(self):
        return (self.row, self.col, self.pending, self.pen, self.origin,
                tuple(self.g), self.gl)


class Kitty:
    """The keyboard flags of one screen: `CSI > u` pushes, `CSI < u` pops."""

    DEPTH = 16

    def __init__(self):
        self.base, self.stack = 0, []

    @property
    def flags(self):
        return self.stack[-1] if self.stack else self.base

    def push(self, flags):
        self.stack.append(flags & 31)
        del self.stack[:-self.DEPTH]

    def pop(self, n):
        del self.stack[max(0, len(self.stack) - n):]

    def set(self, flags, how):
        old = self.flags
        new = {1: flags, 2: old | flags, 3: old & ~flags}.get(how, old) & 31
        if self.stack:
            self.stack[-1] = new
        else:
            self.base = new

    def key(self):
        return (self.base, *self.stack)


class Buffer:
    """The main or the alternate screen."""

    def __init__(self, cols, rows):
        self.rows = [Row(cols) for _ in range(rows)]
        self.saved = None
        self.kitty = Kitty()
