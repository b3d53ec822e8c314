"""What a person waits for: a login, many at once, a new session, an attach,
and the echo of a key, with and without a flood in another session.
"""

import os
import random
import select
import subprocess
import time

import berth
import procs
import servers

ECHO_PAUSE_S = (0.004, 0.016)


def run_true(side, n):
    """Starts n clients at once; milliseconds until all have ended."""
    start_s = time.perf_counter()
    clients = [
        subprocess.Popen([*side.ssh_args(), "true"],
                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        for _ in range(n)
    ]
    try:
        for client in clients:
            if servers.status_of(client) != 0:
                raise berth.Failure(f"true: status {client.returncode}")
    finally:
        berth.end(*clients)
    return (time.perf_counter() - start_s) * 1e3


def login(bench, side):
    """`ssh host true`, one after the other. The CPU is that of everything the
    server started for it, the shell included, counted when all is reaped."""
    n = bench.sizes.logins
    before_s = settled_cpu(side)
    wall = [run_true(side, 1) for _ in range(n)]
    return {"wall": wall, "cpu": (settled_cpu(side) - before_s) * 1e3 / n}


def settled_cpu(side):
    """cpu_reaped() once nobody is left of the connections."""
    berth.wait_for(lambda: len(procs.descendants(side.pid)) == 0,
                   what="the end of all connections")
    return side.cpu_reaped()


def parallel(bench, side):
    return {"wall": run_true(side, 20)}


class Terminal:
    """A client under a pseudo terminal of ours."""

    def __init__(self, args):
        self.fd, slave = os.openpty()
        procs.set_size(self.fd, 80, 24)
        self.start_s = time.perf_counter()
        self.child = subprocess.Popen(
            args, stdin=slave, stdout=slave, stderr=slave,
            start_new_session=True, env={**os.environ, "TERM": "xterm"})
        os.close(slave)

    def read(self, deadline_s=30.0):
        """Some bytes, as soon as there are any."""
        if not select.select([self.fd], [], [], deadline_s)[0]:
            raise berth.Failure("the terminal shows nothing")
        return os.read(self.fd, 65536)

    def expect(self, text):
        seen = b""
        while text not in seen:
            seen += self.read()

    def echo_ms(self):
        """Types a letter; milliseconds until it is seen."""
        start_s = time.perf_counter()
        os.write(self.fd, b"x")
        while b"x" not in self.read():
            pass
        return (time.perf_counter() - start_s) * 1e3

    def close(self):
        berth.end(self.child)
        os.close(self.fd)


def echo_terminal(side):
    """(Terminal, session or None): a `cat` whose terminal echoes."""
    command = "echo go; exec cat"
    if side.name == "berth":
        session, user = side.new_session("/bin/bash", "-c", command)
        return Terminal(side.ssh_args("-tt", user=user)), session
    return Terminal([*side.ssh_args("-tt"), command]), None


def echo_samples(bench, side):
    terminal, session = echo_terminal(side)
    pause = random.Random(1)
    try:
        # as it was printed, or of the screen that an attach shows
        terminal.expect(b"go")
        for _ in range(20):
            terminal.echo_ms()
        found = []
        for _ in range(bench.sizes.keys):
            time.sleep(pause.uniform(*ECHO_PAUSE_S))
            found.append(terminal.echo_ms())
        return found
    finally:
        terminal.close()
        if session:
            side.end_session(session)


def echo_idle(bench, side):
    found = echo_samples(bench, side)
    return {"p50": found, "p99": found}


def echo_flood(bench, side):
    """The same while `yes` runs in another session of the server, as fast as
    its own client takes it."""
    session = None
    if side.name == "berth":
        session, user = side.new_session("yes")
        args = side.ssh_args("-tt", user=user)
    else:
        args = [*side.ssh_args("-tt"), "yes"]
    with open(os.devnull, "wb") as null:
        flood = subprocess.Popen(args, stdin=subprocess.DEVNULL, stdout=null,
                                 stderr=null)
    try:
        time.sleep(0.5)
        found = echo_samples(bench, side)
        if flood.poll() is not None:
            raise berth.Failure("the flood ended early")
        return {"p50": found, "p99": found}
    finally:
        berth.end(flood)
        if session:
            side.end_session(session)
        side.drop_recordings()


def first_byte_ms(args):
    """From the start of the client to the first byte that it shows."""
    terminal = Terminal(args)
    try:
        terminal.read()
        return (time.perf_counter() - terminal.start_s) * 1e3
    finally:
        terminal.close()


def create(bench, side):
    """A shell's first byte in a session that did not exist; for OpenSSH, of a
    login shell."""
    if side.name != "berth":
        return {"shell": [first_byte_ms(side.ssh_args("-tt"))
                          for _ in range(bench.sizes.logins)]}
    found, control = [], []
    for _ in range(bench.sizes.logins):
        name = side.new_name()
        user = f"{side.user}+{name}"
        found.append(first_byte_ms(side.ssh_args("-tt", user=user)))
        side.end_session(user)
        start_s = time.perf_counter()
        session, _ = side.new_session("cat")
        control.append((time.perf_counter() - start_s) * 1e3)
        side.end_session(session)
    return {"shell": found, "control": control}


def attach(bench, side):
    """The first byte of a session that runs already."""
    if side.name != "berth":
        return {}
    session, user = side.new_session("/bin/bash", "-c", "echo go; exec cat")
    try:
        return {"first": [first_byte_ms(side.ssh_args("-tt", user=user))
                          for _ in range(bench.sizes.logins)]}
    finally:
        side.end_session(session)


MEASURES = {
    "login": login, "parallel": parallel,
    "echo_idle": echo_idle, "echo_flood": echo_flood,
    "create": create, "attach": attach,
}
