"""What else keeps a terminal that several people can look at, for `make bench`:
tmux, dtach and abduco, reached through OpenSSH's sshd with the same client, and
berth itself in the same words. Each starts one program; `view_args` is the
client that attaches to it.

abduco is not in every Debian: it takes part where it is installed.
"""

import os
import pathlib
import shutil
import signal
import subprocess

import berth
import procs

SIZE = (80, 24)
TERM = "xterm-256color"
HISTORY = 10_000
TMUX_CONF = f"""
set -g history-limit {HISTORY}
set -g status off
set -g default-terminal screen-256color
"""


def environ():
    """That of clients and of what they attach to."""
    return {**os.environ, "TERM": TERM, "SHELL": "/bin/bash"}


class Session:
    """A program in a terminal that outlives its clients."""

    view_args = ()  # of the client that attaches
    pid = None      # of the process that keeps the terminal

    def resyncs(self):
        """How often viewers were told that they missed something."""
        return 0

    def viewers(self):
        """How many are attached; None when nobody tells."""
        return None

    def cpu_s(self):
        """CPU seconds of the process that keeps it, all threads, to the
        nanosecond: a repaint takes less than a tick of /proc/PID/stat."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.pid}/task").iterdir():
            total += int((task / "schedstat").read_text().split()[0])
        return total / 1e9

    def close(self):
        """Ends the program and what keeps it."""
        kill(procs.get(self.pid), *procs.descendants(self.pid))


class BerthSession(Session):
    def __init__(self, bench, command):
        self.side = bench.berth
        self.id, user = self.side.new_session("/bin/bash", "-c", command)
        self.view_args = self.side.ssh_args("-tt", user=user)
        self.pid = procs.get(self.info()["session"]["pid"]).ppid

    def info(self):
        return self.side.ask(verb="info", session=self.id)

    def resyncs(self):
        return sum(row["resyncs"] for row in self.info()["attachments"])

    def viewers(self):
        return len(self.info()["attachments"])

    def close(self):
        self.side.end_session(self.id)


class SshdSession(Session):
    """No session at all: the program is the client's own, and there can only
    be one."""

    def __init__(self, bench, command):
        self.view_args = [*bench.openssh.ssh_args("-tt"), command]

    def close(self):
        pass


class Socket(Session):
    """A program that keeps a terminal behind a socket of its own."""

    def __init__(self, bench, command):
        bench.n_sockets += 1
        self.socket = bench.openssh.dir / f"{self.program}{bench.n_sockets}"
        self.start(command)
        self.view_args = [
            *bench.openssh.ssh_args("-tt"), "exec", shutil.which(self.program),
            self.attach.format(socket=self.socket)]

    def run(self, *args):
        return subprocess.run(
            [self.program, *args], env=environ(), check=True, timeout=20,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


class TmuxSession(Socket):
    program = "tmux"
    attach = "-u -S {socket} attach"

    def start(self, command):
        conf = self.socket.with_suffix(".conf")
        conf.write_text(TMUX_CONF)
        self.at = ("-u", "-S", str(self.socket), "-f", str(conf))
        cols, rows = SIZE
        self.run(*self.at, "new-session", "-d", "-x", str(cols), "-y",
                 str(rows), "/bin/bash", "-c", command)
        self.pid = int(self.run(*self.at, "display", "-p", "#{pid}"))

    def viewers(self):
        return self.run(*self.at, "list-clients").count("\n")


class DetachSession(Socket):
    """Without a window that has a size, theirs would have none."""

    def start(self, command):
        cols, rows = SIZE
        self.run(*self.create, str(self.socket), *self.options, "/bin/bash",
                 "-c", f"stty cols {cols} rows {rows}; {command}")
        self.pid = berth.wait_for(self.find, what=f"{self.program}")

    def find(self):
        """The one that keeps it names the socket, and is nobody's child."""
        for p in procs.all_procs():
            if p.comm == self.program and str(self.socket) in repr(p):
                return p.pid
        return None


class DtachSession(DetachSession):
    program = "dtach"
    create = ("-n",)
    options = ("-r", "none")
    attach = "-a {socket} -E -z -r none"


class AbducoSession(DetachSession):
    program = "abduco"
    create = ("-n",)
    options = ()
    attach = "-a {socket}"


def kill(*found):
    for p in filter(None, found):
        try:
            os.kill(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


KINDS = {
    "berth": BerthSession, "sshd": SshdSession, "tmux": TmuxSession,
    "dtach": DtachSession, "abduco": AbducoSession,
}


def others(*names):
    """Those of the names that this machine has."""
    return [n for n in names if n == "sshd" or shutil.which(n)]
