"""One terminal and many who look at it: how fast its program may print with 1, 8
and 50 clients and beside one that stands still, and what an attach costs when
10,000 lines have been printed. Rates are those of the program itself, from its
first byte to its exit; `seen` is until the last client has the last byte.
"""

import os
import select
import signal
import subprocess
import time

import berth
import peers
import procs

MB = 1e6
PIPE_BYTES = 1 << 20
STALL_S = 60.0
QUIET_S = 0.2       # nothing more comes of an attach
IDLE_S = 0.05       # the same, when nothing else happens
LATE_S = 1.5        # whom berth left behind is shown the screen once a second
AT_ONCE = 10        # clients that log in together


class Viewer:
    """A client in a window of 80x24 whose output is counted, not looked at."""

    def __init__(self, args):
        self.master, slave = os.openpty()
        procs.set_size(self.master, *peers.SIZE)
        self.bytes = 0
        self.start_s = time.time()
        self.last_s = None
        self.child = subprocess.Popen(
            args, stdin=slave, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
            env=peers.environ(), pipesize=PIPE_BYTES)
        os.close(slave)
        self.fd = self.child.stdout.fileno()

    def close(self):
        berth.end(self.child)
        os.close(self.master)


class Viewers:
    """Clients of one session, all drained by splice() in this process, which
    copies nothing and keeps up with any of them."""

    def __init__(self):
        self.all = {}
        self.null = os.open("/dev/null", os.O_WRONLY)
        self.epoll = select.epoll()

    def add(self, args):
        viewer = Viewer(args)
        self.all[viewer.fd] = viewer
        self.epoll.register(viewer.fd, select.EPOLLIN)
        return viewer

    def drain(self, is_done, seconds=STALL_S):
        """Until is_done(), which is asked every few milliseconds."""
        end_s = time.time() + seconds
        ask_s = 0
        while True:
            for fd, _ in self.epoll.poll(0.01):
                self.take(self.all[fd])
            now = time.time()
            if now >= ask_s:
                if is_done():
                    return
                ask_s = now + 0.005
            if now > end_s:
                raise berth.Failure(f"{seconds} s are not enough for"
                                    f" {len(self.all)} viewers")

    def take(self, viewer):
        n = os.splice(viewer.fd, self.null, PIPE_BYTES)
        if n == 0:
            raise berth.Failure("a client ended:"
                                f" status {viewer.child.wait(10)}")
        viewer.bytes += n
        viewer.last_s = time.time()

    def are_quiet(self, seconds):
        """All have shown something, and nothing for so long."""
        before_s = time.time() - seconds
        return all(v.last_s and v.last_s < before_s
                   for v in self.all.values())

    def attach(self, session, n):
        """N more, some at a time, until they show what there was."""
        while n > 0:
            for _ in range(min(n, AT_ONCE)):
                self.add(session.view_args)
                n -= 1
            self.drain(lambda: self.are_quiet(QUIET_S)
                       and session.viewers() in (None, len(self.all)))

    def close(self):
        for viewer in self.all.values():
            viewer.close()
        self.epoll.close()
        os.close(self.null)


class Burst:
    """A program that prints a file of log lines when it is told to, and says
    when it began and ended."""

    def __init__(self, bench, size):
        self.path, self.size, n_lines = bench.lines(size)
        self.shown = self.size + n_lines  # a terminal puts CR before LF
        self.go, self.times = (bench.new_file(x) for x in ("go", "times"))
        os.mkfifo(self.go)
        self.go.chmod(0o666)
        self.command = (
            f"stty -echo; echo ready; read -r x <{self.go};"
            f" a=$EPOCHREALTIME; cat {self.path}; b=$EPOCHREALTIME;"
            f' echo "$a $b" >{self.times}; exec sleep 600')

    def begin(self):
        """As soon as it listens."""
        def fifo():
            try:
                return os.open(self.go, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return None

        fd = berth.wait_for(fifo, what="a program that waits")
        os.write(fd, b"go\n")
        os.close(fd)

    def ended(self):
        """(start, end) in seconds, or None while it prints."""
        try:
            text = self.times.read_text()
        except FileNotFoundError:
            return None
        if not text.endswith("\n"):
            return None
        return tuple(float(x.replace(",", ".")) for x in text.split())

    def remove(self):
        self.go.unlink()
        self.times.unlink(missing_ok=True)


def burst(bench, kind, n, size, n_stopped=0):
    """What N clients of a session of that kind see of a burst, and what it
    costs its program; N_STOPPED more are there and stand still."""
    b = Burst(bench, size)
    session = peers.KINDS[kind](bench, b.command)
    viewers = Viewers()
    try:
        viewers.attach(session, n)
        watching = list(viewers.all.values())
        viewers.attach(session, n_stopped)
        for v in list(viewers.all.values())[n:]:
            v.child.send_signal(signal.SIGSTOP)
        before = [v.bytes for v in watching]
        b.begin()

        def shown():
            return [v.bytes - was for v, was in zip(watching, before)]

        def is_over():
            return b.ended() and (
                all(x == b.shown for x in shown())
                or all(v.last_s < time.time() - LATE_S for v in watching))

        viewers.drain(is_over)
        start_s, end_s = b.ended()
        seen_s = max(v.last_s for v in watching)
        lost = sum(max(0, b.shown - x) for x in shown())
        return {
            "rate": b.size / MB / (end_s - start_s),
            "seen": b.size / MB / (seen_s - start_s),
            "lost": 100 * lost / (b.shown * n),
            "resyncs": session.resyncs(),
        }
    finally:
        viewers.close()
        session.close()
        b.remove()


def many(n):
    """N clients. berth's figures stand beside those of each other program."""
    def measure(bench, side):
        size = bench.sizes.viewer_bytes[n]
        names = peers.others("tmux", "dtach", "abduco",
                             *(["sshd"] if n == 1 else []))
        if side.name == "berth":
            found = burst(bench, "berth", n, size)
            result = {name: found["rate"] for name in names}
            return {**result, "seen": found["seen"], "lost": found["lost"],
                    "resyncs": found["resyncs"]}
        result = {}
        for name in names:
            found = burst(bench, name, n, size)
            result[name] = found["rate"]
            if name == "tmux":
                result["seen"] = found["seen"]
            if name == "dtach":  # tmux paints: its bytes tell nothing
                result["lost"] = found["lost"]
        return result

    return measure


def stopped(bench, side):
    """One client that reads and one whose process is stopped: the rate, and
    its share of the rate without the latter. Each is measured before and after
    the other, so that what the machine does besides weighs on both."""
    size = bench.sizes.viewer_bytes[1] // 2

    def beside(kind):
        found = {0: [], 1: []}
        for n in (0, 1, 1, 0):
            found[n].append(burst(bench, kind, 1, size, n_stopped=n)["rate"])
        return found[1], sum(found[1]) / sum(found[0])

    names = peers.others("tmux", "dtach", "abduco")
    if side.name == "berth":
        rates, share = beside("berth")
        return {**{name: rates for name in names}, "share": share}
    result = {}
    for name in names:
        if name == "tmux":
            result[name], result["share"] = beside(name)
        else:
            result[name] = burst(bench, name, 1, size, n_stopped=1)["rate"]
    return result


def filled(bench, kind):
    """A session that has printed 10,000 lines and waits."""
    times = bench.new_file("times")
    session = peers.KINDS[kind](
        bench, f"stty -echo; cat {bench.colour_file(peers.HISTORY)};"
        f" echo end >{times}; exec sleep 600")
    berth.wait_for(times.exists, what="a full history")
    times.unlink()
    return session


def attach_full(bench, side):
    """From the start of a client to the last byte that it is sent, and the CPU
    that this takes of the process that keeps the session."""
    session = filled(bench, "berth" if side.name == "berth" else "tmux")
    last, cpu, size = [], [], []
    try:
        for _ in range(bench.sizes.logins):
            before_s = session.cpu_s()
            viewers = Viewers()
            try:
                viewer = viewers.add(session.view_args)
                viewers.drain(lambda: viewers.are_quiet(IDLE_S))
                cpu.append((session.cpu_s() - before_s) * 1e3)
                last.append((viewer.last_s - viewer.start_s) * 1e3)
                size.append(viewer.bytes / 1024)
            finally:
                viewers.close()
            berth.wait_for(lambda: session.viewers() == 0,
                           what="the end of a client")
        return {"last": last, "cpu": cpu, "size": size}
    finally:
        session.close()
        side.drop_recordings()


MEASURES = {
    "viewers_1": many(1), "viewers_8": many(8), "viewers_50": many(50),
    "stopped": stopped, "attach_full": attach_full,
}
