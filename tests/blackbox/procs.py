"""What /proc tells about the processes of a server: who descends from whom,
who holds the server's directory, who became a zombie. Linux only.
"""

import fcntl
import os
import signal
import struct
import termios


def set_size(fd, cols, rows):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Proc:
    """One process as it was when looked at."""

    def __init__(self, pid):
        with open(f"/proc/{pid}/stat", "rb") as f:
            head, tail = f.read().rsplit(b")", 1)
        fields = tail.split()
        self.pid = pid
        self.comm = head.split(b"(", 1)[1].decode("utf-8", "replace")
        self.state = fields[0].decode()
        self.ppid = int(fields[1])
        self.sid = int(fields[3])
        self.cpu_s = (int(fields[11]) + int(fields[12])) / os.sysconf(
            "SC_CLK_TCK"
        )
        self.start = int(fields[19])

    @property
    def key(self):
        return self.pid, self.start

    def link(self, name):
        try:
            return os.readlink(f"/proc/{self.pid}/{name}")
        except OSError:
            return ""

    def links(self):
        """Where it stands and what it has open, as far as we may look."""
        yield self.link("cwd")
        try:
            for fd in os.listdir(f"/proc/{self.pid}/fd"):
                yield self.link(f"fd/{fd}")
        except OSError:
            return

    def mounts(self):
        """Its mounts with what they show, as the kernel lists them."""
        try:
            with open(f"/proc/{self.pid}/mountinfo", encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""

    def __repr__(self):
        try:
            with open(f"/proc/{self.pid}/cmdline", "rb") as f:
                line = f.read().replace(b"\0", b" ").decode("utf-8", "replace")
        except OSError:
            line = ""
        return f"{self.pid} {self.state} ({self.comm}) {line.strip()[:120]}"


def get(pid):
    try:
        return Proc(pid)
    except (OSError, ValueError, IndexError):
        return None


def all_procs():
    found = (get(int(n)) for n in os.listdir("/proc") if n.isdigit())
    return [p for p in found if p]


def is_alive(pid):
    p = get(pid)
    return p is not None and p.state not in "ZX"


def children(pid):
    return [p for p in all_procs() if p.ppid == pid]


def descendants(pid):
    everyone = all_procs()
    found, ring = [], {pid}
    while ring:
        new = [p for p in everyone if p.ppid in ring]
        found += new
        ring = {p.pid for p in new}
    return found


def in_session(sid):
    return [p for p in all_procs() if p.sid == sid and p.state not in "ZX"]


def strays(directory, build, family):
    """Processes of a stopped server: remembered descendants of it, programs
    of the build or sandboxed ones that still hold something below directory,
    and whatever has a workspace of it mounted.
    """
    remembered = {p.key for p in family}
    here = os.readlink("/proc/self/ns/mnt")
    found = []
    for p in all_procs():
        if p.pid == os.getpid() or p.state in "ZX":
            continue
        if p.key in remembered:
            found.append(p)
            continue
        is_product = p.link("exe").startswith(f"{build}/")
        cwd = p.link("cwd")
        if cwd.startswith(f"{directory}/boxes"):
            found.append(p)
        elif is_product and any(x.startswith(directory) for x in p.links()):
            found.append(p)
        elif p.link("ns/mnt") != here and f"{directory}/boxes" in p.mounts():
            found.append(p)
    return found


def kill(found):
    for p in found:
        now = get(p.pid)
        if now and now.key == p.key:
            try:
                os.kill(p.pid, signal.SIGKILL)
            except OSError:
                pass


def unix_sockets(directory):
    """Paths of listening sockets below directory that somebody still has."""
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as f:
        paths = [line.split()[-1] for line in f]
    return [p for p in paths if p.startswith(f"{directory}/")]


def rss_kib(pid):
    """Resident private and shared memory of a process, 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            for line in f:
                if line.startswith("VmRSS:"):
                    return int(line.split()[1])
    except OSError:
        pass
    return 0


def fd_count(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def zombies(pid):
    return [p for p in descendants(pid) if p.state == "Z"]
