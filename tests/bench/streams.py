"""Bytes in bulk: exec without a terminal, down and up, and the output of
terminals. Rates are from the first byte to the last, without the login; server
CPU is that of the server's own processes, read while they still live, without
the program that runs in the session (dd, cat, yes).
"""

import fcntl
import os
import select
import subprocess
import time

import berth
from servers import AES, CHACHA

GB = 1e9
MB = 1e6
PIPE_BYTES = 1 << 20
STALL_S = 60.0

# The end of the connection waits until we have read what it cost.
HOLD = "exec sleep 600"


def spawn(args, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL):
    child = subprocess.Popen(args, stdin=stdin, stdout=subprocess.PIPE,
                             stderr=stderr)
    for pipe in (child.stdout, child.stdin):
        if pipe:
            try:
                fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
            except OSError:
                pass  # smaller pipes are slower for both alike
    return child


class Drain:
    """Takes what a client prints without looking at it: spliced away, so that
    this costs next to nothing."""

    def __init__(self, child):
        self.child = child
        self.fd = child.stdout.fileno()
        self.null = os.open("/dev/null", os.O_WRONLY)
        self.first_s = self.last_s = None

    def take(self, size):
        """Exactly size bytes, or a Failure."""
        left = size
        while left > 0:
            if not select.select([self.fd], [], [], STALL_S)[0]:
                raise berth.Failure(f"{left} of {size} bytes do not come")
            n = os.splice(self.fd, self.null, min(left, PIPE_BYTES))
            now = time.perf_counter()
            if n == 0:
                raise berth.Failure(f"ended {left} bytes before {size}")
            if self.first_s is None:
                self.first_s = now
            self.last_s = now
            left -= n
        return self

    @property
    def seconds(self):
        return self.last_s - self.first_s

    def close(self):
        os.close(self.null)
        berth.end(self.child)


def start(drain, side, before):
    """Waits for the command's `go` and lets it begin: from here on time and
    CPU count. Returns the CPU seconds of the login."""
    drain.take(len(b"go\r\n") if "-tt" in drain.child.args else len(b"go\n"))
    login_s = side.cpu_since(before)
    drain.first_s = time.perf_counter()
    drain.child.stdin.write(b"\n")
    drain.child.stdin.flush()
    return login_s


def down(cipher):
    """`ssh host 'dd of zeroes'`."""
    def measure(bench, side):
        size = bench.sizes.stream_bytes
        args = [*side.ssh_args(cipher=cipher),
                "echo go; read -r x; dd if=/dev/zero bs=1M"
                f" count={size >> 20} status=none; {HOLD}"]
        return run_down(side, args, size)

    return measure


def run_down(side, args, size):
    before = side.cpu_by_process()
    drain = Drain(spawn(args, stdin=subprocess.PIPE))
    try:
        login_s = start(drain, side, before)
        drain.take(size)
        cpu_s = side.cpu_since(before) - login_s
    finally:
        drain.close()
    return {"rate": size / MB / drain.seconds, "cpu": cpu_s * GB / size}


def up(cipher):
    """`ssh host 'dd of=/dev/null'` of a file that costs nothing to read: from
    the start of the command to its count of the bytes."""
    def measure(bench, side):
        size = bench.sizes.stream_bytes
        command = f"echo go; dd of=/dev/null bs=128k 2>&1 | tail -n 1; {HOLD}"
        zeroes = os.memfd_create("zeroes")
        os.ftruncate(zeroes, size)
        before = side.cpu_by_process()
        child = spawn([*side.ssh_args(cipher=cipher), command], stdin=zeroes)
        os.close(zeroes)
        try:
            first = child.stdout.readline()
            start_s = time.perf_counter()
            login_s = side.cpu_since(before)
            said = child.stdout.readline()
            seconds = time.perf_counter() - start_s
            cpu_s = side.cpu_since(before) - login_s
        finally:
            berth.end(child)
        if first != b"go\n" or not said.startswith(b"%d bytes" % size):
            raise berth.Failure(f"up: {first!r} {said!r}")
        return {"rate": size / MB / seconds, "cpu": cpu_s * GB / size}

    return measure


def pty(what, is_shared=False, is_recorded=True):
    """`ssh -tt` and much output. Shared: a session that others could
    attach to; otherwise a terminal of this channel's own. OpenSSH knows only
    the latter."""
    def measure(bench, side):
        command, size = pty_command(bench, what)
        command = f"stty -echo; echo go; read -r x; {command}; {HOLD}"
        session = None
        if side.name == "berth" and not is_recorded:
            side = bench.unrecorded
        if side.name == "berth" and is_shared:
            session, user = side.new_session("/bin/bash", "-c", command)
            args = side.ssh_args("-tt", user=user)
        else:
            args = [*side.ssh_args("-tt"), command]
        try:
            return run_down(side, args, size)
        finally:
            if session:
                side.end_session(session)
            side.drop_recordings()

    return measure


def pty_command(bench, what):
    """The command and what a terminal makes of its output: CR before LF."""
    if what == "log":
        path, size, n_lines = bench.log_file
        return f"cat {path}", size + n_lines
    size = bench.sizes.yes_bytes & ~1
    return f"yes | head -c {size}", size + size // 2


MEASURES = {
    "down_aes": down(AES), "down_chacha": down(CHACHA),
    "up_aes": up(AES), "up_chacha": up(CHACHA),
    "pty_log": pty("log"), "pty_yes": pty("yes"),
    "shared_log": pty("log", is_shared=True),
    "shared_yes": pty("yes", is_shared=True),
    "plain_log": pty("log", is_shared=True, is_recorded=False),
    "plain_yes": pty("yes", is_shared=True, is_recorded=False),
}
