"""A load for servers of tests/long: programs that print numbered lines until
they are given an exit code, and clients that check that no number is missing.
"""

import re
import subprocess
import threading

# Prints a line each PACE seconds without forking; a line on stdin is the code,
# of which read may have seen a part only when its time is over.
COUNT = ("n=0; while ! read -rt {pace} part; do code=$code$part n=$((n + 1));"
         ' echo "line $n"; done; exit $code$part')
LINE = re.compile(rb"(?:^|\n)line (\d+)\r?(?=\n)")


class Numbers:
    """Takes output as it comes; the first gap or step back is in `wrong`."""

    def __init__(self):
        self.rest = b""
        self.last = None
        self.first = None
        self.wrong = None

    def feed(self, data):
        self.rest += data
        end = self.rest.rfind(b"\n")
        if end < 0:
            return
        part, self.rest = self.rest[: end + 1], self.rest[end:]
        for found in LINE.finditer(part):
            n = int(found[1])
            if self.last is None:
                self.first = n
            elif n != self.last + 1 and not self.wrong:
                self.wrong = f"line {n} after line {self.last}"
            self.last = n


class Client:
    """An ssh process on a counting session, with a reader of its own."""

    def __init__(self, srv, user, command=None, opts=()):
        self.numbers = Numbers()
        self.told = None  # the exit code that was typed
        self.proc = srv.spawn(user, command, opts, stdin=subprocess.PIPE)
        self.errors = bytearray()
        self.threads = [
            threading.Thread(target=self.read, daemon=True),
            threading.Thread(target=self.read_errors, daemon=True),
        ]
        for t in self.threads:
            t.start()

    @property
    def pid(self):
        return self.proc.pid

    def read(self):
        while chunk := self.proc.stdout.read1(65536):
            self.numbers.feed(chunk)

    def read_errors(self):
        while chunk := self.proc.stderr.read1(65536):
            self.errors += chunk

    def is_alive(self):
        return self.proc.poll() is None

    def tell(self, code):
        """Ends the program with an exit code, if it still listens."""
        self.told = code
        try:
            self.proc.stdin.write(b"%d\n" % code)
            self.proc.stdin.flush()
        except OSError:
            pass

    def cut(self):
        """As a network does that goes away."""
        self.proc.kill()
        self.proc.wait(20)


def counting(pace):
    return COUNT.format(pace=pace)

