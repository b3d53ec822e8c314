"""A program under a PTY of a terminal that behaves like a real one: the model of
vt.py sees what it prints, queries are answered after a delay, and every byte
that is sent is logged with its reason. A thread reads; every wait has a deadline.

Usage: terminal.py [--size COLSxROWS] [--delay S] [--seconds S] [--type TEXT]...
                   -- COMMAND...
Prints the screen and what the terminal was asked and sent at the end.
"""

import argparse
import collections
import fcntl
import heapq
import itertools
import os
import select
import signal
import struct
import subprocess
import termios
import threading
import time

import answers
from vt import Vt

Sent = collections.namedtuple("Sent", "at why data")


class Terminal:
    """One person's terminal. `sent` lists all that went to the program, with
    why `type` or the kind of a query; `data` is all that it printed."""

    def __init__(self, args, cols=80, rows=24, env=None, delay=0.0,
                 deadline=30.0, history=20000):
        self.vt = Vt(cols, rows, history)
        self.vt.answer = self._asked
        self.delay, self.deadline = delay, deadline
        self.data = bytearray()
        self.sent = []
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.is_over = False
        self._due, self._count = [], itertools.count()
        self.master, slave = os.openpty()
        self._set_size(cols, rows)
        self.wake_out, self.wake_in = os.pipe()
        self.proc = subprocess.Popen(
            ["setsid", "-c", *map(str, args)], stdin=slave, stdout=slave,
            stderr=slave, env={**os.environ, "TERM": "xterm-256color",
                               **(env or {})})
        os.close(slave)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    # ---- the reading side -------------------------------------------------

    def _read(self):
        while True:
            timeout = None
            with self.lock:
                if self._due:
                    timeout = max(0, self._due[0][0] - time.monotonic())
            ready = select.select([self.master, self.wake_out], [], [],
                                  timeout)[0]
            self._send_due()
            if self.wake_out in ready:
                return
            if self.master in ready and not self._take():
                return

    def _take(self):
        try:
            chunk = os.read(self.master, 65536)
        except OSError:
            chunk = b""
        with self.changed:
            self.data += chunk
            self.vt.feed(chunk)
            self.is_over = not chunk
            self.changed.notify_all()
        return bool(chunk)

    def _asked(self, kind, text):
        reply = answers.answer(self.vt, kind, text)
        if reply:
            heapq.heappush(self._due, (time.monotonic() + self.delay,
                                       next(self._count), kind, reply))

    def _send_due(self):
        while True:
            with self.lock:
                if not self._due or self._due[0][0] > time.monotonic():
                    return
                _, _, kind, reply = heapq.heappop(self._due)
            self._send(reply, kind)

    # ---- the person -------------------------------------------------------

    def _send(self, data, why="type"):
        if isinstance(data, str):
            data = data.encode()
        if not data:
            return
        with self.lock:
            self.sent.append(Sent(time.monotonic(), why, data))
        try:
            while data:
                data = data[os.write(self.master, data):]
        except OSError:
            pass  # the program is gone; what waits for it will say so

    def type(self, text):
        self._send(text)

    send = type

    def press(self, name):
        self._send(answers.key(self.vt, name))

    def paste(self, text):
        self._send(answers.paste(self.vt, text))

    def focus(self, has_focus):
        self._send(answers.focus(self.vt, has_focus))

    def mouse(self, row, col, **kw):
        self._send(answers.mouse(self.vt, row, col, **kw))

    def _set_size(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ,
                    struct.pack("HHHH", rows, cols, 0, 0))

    def resize(self, cols, rows):
        with self.lock:
            self.vt.resize(cols, rows)
            self._set_size(cols, rows)

    # ---- what it shows ----------------------------------------------------

    def replies(self):
        """What the terminal sent that nobody typed."""
        with self.lock:
            return [s for s in self.sent if s.why != "type"]

    def text(self):
        with self.lock:
            return self.vt.text()

    def lines(self):
        with self.lock:
            return self.vt.lines()

    def all_lines(self):
        """The history and the main screen, line by line."""
        with self.lock:
            return self.vt.all_lines()

    def raw(self):
        with self.lock:
            return bytes(self.data)

    def wait_until(self, condition, deadline=None, what=None):
        """The first true value of condition(vt); judged after each change."""
        end = time.monotonic() + (deadline or self.deadline)
        with self.changed:
            while True:
                value = condition(self.vt)
                if value:
                    return value
                left = end - time.monotonic()
                if left <= 0 or self.is_over:
                    raise AssertionError(
                        f"{'over before' if self.is_over else 'no'} "
                        f"{what or condition}; the screen:\n{self.vt.text()}")
                self.changed.wait(left)

    def wait_for(self, text, deadline=None):
        """Waits until TEXT stands on the screen."""
        return self.wait_until(lambda vt: text in vt.text(), deadline,
                               repr(text))

    def wait_gone(self, text, deadline=None):
        return self.wait_until(lambda vt: text not in vt.text(), deadline,
                               f"end of {text!r}")

    def wait_quiet(self, quiet=0.3, deadline=None):
        """Waits until nothing was printed for QUIET seconds."""
        end = time.monotonic() + (deadline or self.deadline)
        with self.changed:
            while time.monotonic() < end:
                seen = len(self.data)
                self.changed.wait(quiet)
                if seen == len(self.data):
                    return self
        raise AssertionError("it never falls silent")

    def ready(self):
        """Waits until the shell answers."""
        self.type("echo rea''dy_$((40+2))\r")
        self.wait_for("ready_42")
        return self

    # ---- its end ----------------------------------------------------------

    def wait(self, deadline=None):
        """The exit status, when all output is read."""
        try:
            status = self.proc.wait(deadline or self.deadline)
        except subprocess.TimeoutExpired:
            raise AssertionError(
                f"it hangs; the screen:\n{self.text()}") from None
        self.reader.join(5)
        return status

    def kill(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)

    def close(self):
        if self.master < 0:
            return
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
        self.proc.wait(10)
        os.write(self.wake_in, b"x")
        self.reader.join(5)
        for fd in (self.master, self.wake_in, self.wake_out):
            os.close(fd)
        self.master = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--size", default="80x24")
    p.add_argument("--delay", type=float, default=0)
    p.add_argument("--seconds", type=float, default=5)
    p.add_argument("--type", action="append", default=[])
    p.add_argument("command", nargs="+")
    a = p.parse_args()
    cols, rows = map(int, a.size.split("x"))
    with Terminal(a.command, cols, rows, delay=a.delay) as t:
        for text in a.type:
            t.wait_quiet()
            t.type(text.encode().decode("unicode_escape"))
        try:
            t.wait(a.seconds)
        except AssertionError:
            pass
        print(t.text())
        for kind, text in t.vt.queries:
            print(f"asked: {kind} {text}")
        for sent in t.sent:
            print(f"sent for {sent.why}: {sent.data!r}")


if __name__ == "__main__":
    main()
