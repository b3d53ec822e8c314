"""A real terminal without a window: runs a command under a PTY, feeds what it
prints to the model of vt.py, answers its queries after a set delay, and logs
every byte in both directions. Every wait has a deadline.

Usage: terminal.py [-s COLSxROWS] [-d DELAY_MS] [-t SECONDS] [-i TEXT] -- COMMAND...
Types TEXT, prints the last screen, what was typed by itself, and the status.
"""

import argparse
import fcntl
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from vt import Vt  # noqa: E402 - its folder had to be named first

DEADLINE = 30.0
KEYS = {
    "up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F",
}
VERSION = "harness(1)"


class Late(AssertionError):
    """What was waited for did not come; the text says what was there."""


def answer_of(vt, kind, text):
    """What a terminal of today says to a query; "" when nothing."""
    if kind == "DA1":
        return "\x1b[?62;22c"
    if kind == "DA2":
        return "\x1b[>41;380;0c"
    if kind == "DA3":
        return "\x1bP!|00000000\x1b\\"
    if kind == "DSR":
        return answer_dsr(vt, text)
    if kind == "XTVERSION":
        return f"\x1bP>|{VERSION}\x1b\\"
    if kind == "DECRQM":
        return answer_mode(vt, text)
    if kind == "XTGETTCAP":
        return f"\x1bP0+r{text}\x1b\\"
    if kind == "DECRQSS":
        return "\x1bP0$r\x1b\\"
    if kind == "KITTY":
        return f"\x1b[?{vt.kitty.flags}u"
    if kind == "WINOPS":
        return answer_window(vt, text)
    if kind == "OSC 52":
        return f"\x1b]52;{text};c2VjcmV0\x1b\\"
    if kind.startswith("OSC "):
        return answer_colour(vt, int(kind[4:]), text)
    return ""


def answer_dsr(vt, text):
    if text == "5":
        return "\x1b[0n"
    row, col = vt.row + 1, vt.col + 1
    if vt.origin:
        row, col = row - vt.top, col - vt.left
    if text == "6":
        return f"\x1b[{row};{col}R"
    return f"\x1b[?{row};{col};1R" if text == "?6" else ""


def answer_mode(vt, text):
    if text.startswith("?"):
        value = vt._get_one(int(text[1:]))
    else:
        value = vt.ansi.get(int(text))
    return f"\x1b[{text};{0 if value is None else 1 if value else 2}$y"


def answer_window(vt, text):
    what = text.split(";")[0]
    if what == "14":
        return f"\x1b[4;{vt.rows * 16};{vt.cols * 8}t"
    if what == "18":
        return f"\x1b[8;{vt.rows};{vt.cols}t"
    if what == "20" or what == "21":
        return f"\x1b]{'L' if what == '20' else 'l'}{vt.title}\x1b\\"
    return ""


def answer_colour(vt, n, text):
    defaults = {10: 0xd0d0d0, 11: 0x101018, 12: 0xffffff}
    if n in (4, 5):
        index = int(text) if text.isdigit() else 0
        value, head = vt.palette.get(index, 0x808080), f"{n};{text}"
    else:
        value, head = vt.dynamic.get(n, defaults.get(n, 0x808080)), str(n)
    parts = "/".join(f"{value >> s & 255:02x}" * 1 + f"{value >> s & 255:02x}"
                     for s in (16, 8, 0))
    return f"\x1b]{head};rgb:{parts}\x1b\\"


class Terminal:
    """ARGS run under a PTY of COLS x ROWS. `model` False only keeps bytes (a
    viewer as fast as can be). `slow` is a pause after each read, in seconds.
    Answers go out `delay` seconds after the query; `answers` False: never."""

    def __init__(self, args, cols=80, rows=24, delay=0.0, answers=True,
                 model=True, env=None, history=20000, deadline=DEADLINE,
                 cwd=None):
        self.vt = Vt(cols, rows, history) if model else None
        self.cols, self.rows = cols, rows
        self.delay, self.deadline = delay, deadline
        self.slow = 0.0
        self.start = time.monotonic()
        self.last_s = self.start
        self.log = []  # (seconds, "in" | "out" | "answer", bytes)
        self.received = bytearray()
        self.answered = bytearray()
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.at_end = False
        self._stop = False
        self._due = []
        if model and answers:
            self.vt.answer = self._answer
        self.master, slave = os.openpty()
        self._set_size(cols, rows)
        self.proc = subprocess.Popen(
            ["setsid", "-c", *map(str, args)], stdin=slave,
            stdout=slave, stderr=slave, cwd=cwd,
            env={**os.environ, "TERM": "xterm-256color", **(env or {})},
        )
        os.close(slave)
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    # ---- the loop ---------------------------------------------------------

    def _note(self, what, data):
        self.log.append((time.monotonic() - self.start, what, bytes(data)))

    def _answer(self, kind, text):
        said = answer_of(self.vt, kind, text)
        if said:
            self._due.append((time.monotonic() + self.delay, said.encode()))

    def _send_due(self):
        """Writes the answers whose time has come; seconds to the next one."""
        while self._due:
            left = self._due[0][0] - time.monotonic()
            if left > 0:
                return left
            data = self._due.pop(0)[1]
            self.answered += data
            self._note("answer", data)
            self._write(data)
        return 0.2

    def _run(self):
        while not self._stop:
            with self.lock:
                pause = self._send_due()
            try:
                if not select.select([self.master], [], [], pause)[0]:
                    continue
                chunk = os.read(self.master, 65536)
            except (OSError, ValueError):
                chunk = b""
            with self.lock:
                if not chunk:
                    break
                self.received += chunk
                self._note("in", chunk)
                self.last_s = time.monotonic()
                if self.vt:
                    self.vt.feed(chunk)
                self.changed.notify_all()
            if self.slow:
                time.sleep(self.slow)
        with self.lock:
            self.at_end = True
            self.changed.notify_all()

    def _write(self, data):
        end = time.monotonic() + self.deadline
        while data and self.master >= 0:
            if not select.select([], [self.master], [], 0.5)[1]:
                if time.monotonic() > end:
                    raise Late("the terminal takes no more input")
                continue
            try:
                data = data[os.write(self.master, data[:4096]):]
            except OSError:
                return

    def _set_size(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, cols * 8, rows * 16))

    # ---- what a person does -----------------------------------------------

    def type(self, data):
        if isinstance(data, str):
            data = data.encode()
        self._note("out", data)
        self._write(data)
        return self

    def key(self, name):
        """An arrow, home or end, as the cursor key mode wants it."""
        with self.lock:
            middle = "O" if self.vt.modes[1] else "["
        return self.type(f"\x1b{middle}{KEYS[name]}")

    def paste(self, data):
        """As a terminal pastes: in brackets when the program asked for it."""
        if isinstance(data, str):
            data = data.encode()
        data = data.replace(b"\n", b"\r")
        with self.lock:
            is_wrapped = self.vt.modes[2004]
        return self.type(b"\x1b[200~" + data + b"\x1b[201~" if is_wrapped
                         else data)

    def click(self, col, row, button=0):
        """A press and a release, from 0; nothing when the mouse is off."""
        with self.lock:
            mouse, encoding = self.vt.mouse, self.vt.encoding
        if not mouse:
            return self
        if encoding == 1006:
            at = f"{button};{col + 1};{row + 1}"
            return self.type(f"\x1b[<{at}M\x1b[<{at}m")
        press = bytes([32 + button, 33 + col, 33 + row])
        release = bytes([35, 33 + col, 33 + row])
        return self.type(b"\x1b[M" + press + b"\x1b[M" + release)

    def resize(self, cols, rows):
        with self.lock:
            self.cols, self.rows = cols, rows
            if self.vt:
                self.vt.resize(cols, rows)
            self._set_size(cols, rows)
        return self

    # ---- what a person sees -----------------------------------------------

    @property
    def bytes(self):
        with self.lock:
            return bytes(self.received)

    @property
    def replies(self):
        """What the terminal typed by itself."""
        with self.lock:
            return bytes(self.answered)

    def lines(self):
        with self.lock:
            return self.vt.lines()

    def screen(self):
        with self.lock:
            return self.vt.text()

    def wait(self, condition, deadline=None, what=None):
        """The first true value of condition(), looked at after each read."""
        end = time.monotonic() + (deadline or self.deadline)
        with self.lock:
            while True:
                value = condition()
                if value:
                    return value
                left = end - time.monotonic()
                if left <= 0 or self.at_end:
                    break
                self.changed.wait(min(left, 0.25))
            value = condition()
            if value:
                return value
            raise Late(f"{'ended before' if self.at_end else 'not in time'}: "
                       f"{what or condition}\n{self.describe()}")

    def wait_text(self, pattern, deadline=None):
        """A match of the regular expression on the screen, lines joined."""
        regex = re.compile(pattern, re.M)
        return self.wait(lambda: regex.search(self.vt.text()), deadline,
                         f"{pattern!r} on the screen")

    def wait_bytes(self, pattern, deadline=None, start=0):
        """A match of the regular expression in what came."""
        if isinstance(pattern, str):
            pattern = pattern.encode()
        regex = re.compile(pattern, re.S)
        return self.wait(lambda: regex.search(self.received, start), deadline,
                         f"{pattern!r}")

    def wait_quiet(self, seconds=0.3, deadline=None):
        """Until nothing has come for SECONDS."""
        def is_quiet():
            return time.monotonic() - self.last_s > seconds
        return self.wait(is_quiet, deadline, f"{seconds} s of silence")

    def describe(self):
        if not self.vt:
            return f"came last: {bytes(self.received[-400:])!r}"
        return (f"screen {self.vt.cols}x{self.vt.rows}, cursor"
                f" {self.vt.col},{self.vt.row}:\n{self.vt.text()}\n"
                f"came last: {bytes(self.received[-300:])!r}")

    def ready(self, deadline=None):
        """Waits until a shell answers, whatever it is in the middle of."""
        self.type("echo rea''dy_$((40+2))\r")
        start = len(self.received) - 2
        self.wait_bytes(rb"ready_42\r?\n", deadline, max(0, start - 4096))
        return self

    # ---- its end ----------------------------------------------------------

    def exit(self, deadline=None):
        """The command's status, once it ended and all was read."""
        try:
            status = self.proc.wait(deadline or self.deadline)
        except subprocess.TimeoutExpired:
            raise Late(f"the command hangs\n{self.describe()}") from None
        self.thread.join(5)
        return status

    def kill(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)

    def close(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
        self.proc.wait(10)
        self._stop = True
        self.thread.join(5)
        if self.master >= 0:
            os.close(self.master)
            self.master = -1


def main(argv):
    p = argparse.ArgumentParser(prog="terminal.py", description=__doc__)
    p.add_argument("-s", "--size", default="80x24")
    p.add_argument("-d", "--delay", type=float, default=0, metavar="MS")
    p.add_argument("-t", "--time", type=float, default=10, metavar="SECONDS")
    p.add_argument("-i", "--input", default="", metavar="TEXT")
    p.add_argument("command", nargs="+")
    args = p.parse_args(argv)
    cols, rows = map(int, args.size.split("x"))
    terminal = Terminal(args.command, cols, rows, args.delay / 1e3)
    try:
        if args.input:
            terminal.wait_quiet(0.5, args.time)
            terminal.type(args.input.encode().decode("unicode_escape"))
        try:
            status = terminal.exit(args.time)
        except Late:
            status = None
        print(terminal.screen())
        print(f"-- {len(terminal.bytes)} bytes; typed by itself:"
              f" {terminal.replies!r}; events {terminal.vt.events[:20]};"
              f" status {status}")
    finally:
        terminal.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
