"""The editing half of the terminal model in vt.py: what characters, line feeds,
cursor moves and erasures do to the grid. Knows no escape sequence.
"""

from grid import Row, Saved, erased, width

LINES = dict(zip(
    "`abcdefghijklmnopqrstuvwxyz{|}~_",
    "◆▒␉␌␍␊°±␤␋┘┐┌└┼⎺⎻─⎼⎽├┤┴┬│≤≥π≠£·\u00a0",
))


class Edit:
    """Acts on what Vt.reset() makes: buffer, row, col, pending, pen, modes."""

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
        self.last, self.last_is_fresh = text[-1], True
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
        self.last, self.last_is_fresh = c, False
        if self.pending:
            if self.modes[7]:
                self._wrap()
            self.pending = False
        limit = self.limit()
        if n == 2 and self.col + 2 > limit:
            if limit - (self.left if limit == self.right + 1 else 0) < 2:
                return  # no room for it in any row
            if not self.modes[7]:
                return
            self.buffer.rows[self.row].erase(
                self.col, limit, erased(self.pen.bg))
            self._wrap()
            limit = self.limit()
            if self.col + 2 > limit:
                return
        self.last_is_fresh = True
        row = self.buffer.rows[self.row]
        if self.ansi[4] and self.left <= self.col and limit == self.right + 1:
            row.insert(self.col, n, limit, erased(self.pen.bg))
            row.is_wrapped = False
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
        self.last_is_fresh = False
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
        left = self.left_edge()
        self._index(self._is_full_width() and self._has_next_row())
        self.col = left

    # ---- lines ------------------------------------------------------------

    def _has_next_row(self):
        """False where a line feed does nothing."""
        if self.row == self.bottom:
            return self.left <= self.col <= self.right
        return self.row < self.rows - 1

    def _index(self, goes_on=False):
        row = self.buffer.rows[self.row]
        row.is_wrapped |= goes_on
        if self.row == self.bottom:
            if self.left <= self.col <= self.right:
                row.is_wrapped &= goes_on or not self._is_full_width()
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

    def _scroll_rows_up(self, top, n, to_history=True):
        """SU and DL: what was in the last row goes on nowhere."""
        if self._is_full_width():
            self.buffer.rows[self.bottom].is_wrapped = False
        self._scroll_up(top, self.bottom, n, to_history)

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
        if self.origin:  # which knows no place outside of the margins
            self.row = max(self.top, min(self.row, self.bottom))
            self.col = max(self.left, min(self.col, self.right))

    # ---- erase and edit ---------------------------------------------------

    def _erase_line(self, how, keep=False):
        """While a wrap is pending nothing is left of the row for EL 0: so say
        VTE, kitty, alacritty and tmux; xterm takes the last character."""
        if how == 0 and self.pending:
            return
        row, pen = self.buffer.rows[self.row], erased(self.pen.bg)
        start = self.col if how == 0 else 0
        end = self.col + 1 if how == 1 else self.cols
        row.erase(start, end, pen, keep)
        if how != 1 and row.ch[-1] == " ":  # not protected
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
        else:
            self.pending = False
        which = {0: range(self.row + 1, self.rows), 1: range(self.row),
                 2: range(self.rows)}[how]
        for i in which:
            row = self.buffer.rows[i]
            row.erase(0, self.cols, pen, keep)
            row.is_wrapped &= row.ch[-1] != " "  # protected

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
            self._scroll_rows_up(self.row, n, False)
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
