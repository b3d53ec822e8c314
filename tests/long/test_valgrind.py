"""No process of berth reads what it may not or loses memory: berthd, each
berth-sshd and each keeper run under valgrind through a day in their life, and
every report must be clean. Builds build/valgrind for itself, a release that is
not confined: sanitizers, seccomp and limits of memory do not go with valgrind.
"""
import errno
import hashlib
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading

import pytest

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

import berth  # noqa: E402
from berth import ROOT, Server, wait_for  # noqa: E402

SLOW = 120  # seconds for what takes one otherwise
BUILD = ROOT / "build" / "valgrind"
SHIM = BUILD / "obj/tests/long/valgrind_shim.o"
WRONG = re.compile(
    r"ERROR SUMMARY: [1-9]|Invalid (read|write|free)|uninitialised"
    r"|unaddressable|definitely lost in|Process terminating.*SIG(SEGV|ABRT|BUS)"
)
NAME = "berth-valgrind-" + hashlib.sha256(bytes(ROOT)).hexdigest()[:12]


def build():
    """The programs with valgrind_shim.c in them."""
    wraps = ("pidfd_open", "pidfd_send_signal", "setrlimit")
    words = [
        f"B={BUILD.relative_to(ROOT)}", "SAN=", "CONFINED=0",
        f"CPPFLAGS=-DSHIM_NAME='\"{NAME}\"'",
        f"LDFLAGS={SHIM.relative_to(ROOT)} "
        + " ".join(f"-Wl,--wrap={w}" for w in wraps),
    ]
    for target in (str(SHIM.relative_to(ROOT)), "all"):
        subprocess.run(["make", "-j2", *words, target], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL,
                       timeout=600, stdin=subprocess.DEVNULL)


class Pidfds:
    """Opens pidfds for processes whose valgrind cannot; see valgrind_shim.c."""

    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.bind(b"\0" + NAME.encode())
        self.socket.listen(64)
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                client = self.socket.accept()[0]
            except OSError:
                return
            with client:
                self.answer(client)

    def answer(self, client):
        try:
            fd = os.pidfd_open(struct.unpack("i", client.recv(4))[0])
        except OSError as e:
            client.send(struct.pack("i", e.errno or errno.EIO))
            return
        try:
            socket.send_fds(client, [struct.pack("i", 0)], [fd])
        finally:
            os.close(fd)

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def valgrind(logs):
    """The words before berthd. Shells and tools of a sandbox run bare."""
    return [
        "valgrind", "--tool=memcheck", "--leak-check=full",
        "--show-leak-kinds=definite,indirect",
        "--errors-for-leak-kinds=definite,indirect",
        "--error-exitcode=99", "--num-callers=30", "--vgdb=no",
        "--child-silent-after-fork=yes", "--trace-children=yes",
        "--trace-children-skip=*/bin/*,*/sbin/*,*/lib/*",
        f"--log-file={logs}/%p.log",
    ]


class Watched(Server):
    """A server under valgrind; its reports are in `reports`."""

    def __init__(self, **options):
        super().__init__(
            start=False, build=BUILD, server__login_grace=f"{SLOW}s",
            **options)
        self.reports = self.dir / "reports"
        self.reports.mkdir()
        self.reports.chmod(0o1777)
        self.prefix = valgrind(self.reports)

    def ended(self):
        """The programs whose report goes to the end, by name."""
        found = []
        for path in self.reports.iterdir():
            text = path.read_text(errors="replace")
            command = re.search(r"Command: (\S+)", text)
            if command and "ERROR SUMMARY" in text:
                found.append(os.path.basename(command[1]))
        return found

    def findings(self):
        """Reports with something wrong in them, their ends."""
        bad = []
        for path in sorted(self.reports.iterdir()):
            text = path.read_text(errors="replace")
            # who was ended by a signal has no summary
            if WRONG.search(text):
                bad.append(f"{path.name}:\n{text[-6000:]}")
        return bad


@pytest.fixture
def watched(monkeypatch):
    monkeypatch.setattr(berth, "DEADLINE", SLOW)
    build()
    pidfds = Pidfds()
    server = Watched(session__on_shutdown="keep", recording__exec="yes")
    try:
        server.start(SLOW)
        yield server
    finally:
        server.close()
        pidfds.close()


def share(srv, box):
    """Two people on one shell: typing, a size, a lot of output, detaching."""
    one = srv.term(box, deadline=SLOW).ready()
    two = srv.term(box, deadline=SLOW).ready()
    one.send("echo from_$((1+1))_one\r")
    two.expect(rb"from_2_one\r\n")
    two.resize(100, 30)
    two.send("stty size\r")
    one.expect(rb"30 100\r\n")
    two.send("seq 1 20000 | tail -n 3000; echo end_$((40+2))\r")
    one.expect(rb"end_42\r\n")
    two.close()
    return one


def execs(srv, box):
    """Without a PTY and with one, input and output, a signal, a failure."""
    done = srv.ssh(box, "cat; echo err >&2; exit 7", timeout=SLOW,
                   input=b"x" * 200000)
    assert (done.returncode, len(done.stdout)) == (7, 200000)
    done = srv.ssh(box, "tty; exit 3", ["-tt"], timeout=SLOW)
    assert done.returncode == 3
    done = srv.ssh(box, "kill -TERM $$", timeout=SLOW)
    assert done.returncode == 255
    stranger = berth.make_key(srv.dir / "stranger", "stranger")
    assert srv.ssh(box, "true", key=stranger, timeout=SLOW).returncode == 255


def administer(srv, box):
    srv.berth_ok("new", "-s", box, "-n", "side", "--", "sh", "-c",
                 "echo hello; cat", timeout=SLOW)
    for verb in (["ls"], ["ls", "-a"], ["who"], ["doctor"], ["rec", "ls"],
                 ["info", f"{box}+side"], ["send", f"{box}+side", "typed\n"],
                 ["resize", f"{box}+side", "120x40"],
                 ["tail", f"{box}+side", "-n", "5"], ["info", "nothing"]):
        srv.berth(*verb, timeout=SLOW)
    srv.berth_ok("kill", f"{box}+side", timeout=SLOW)
    assert srv.row(box, "side")["status"] == "killed"
    srv.berth_ok("rm", f"{box}+side", timeout=SLOW)


def restart(srv):
    """SIGTERM leaves sessions; the next berthd takes them over."""
    assert srv.stop(SLOW) == 0
    srv.start(SLOW)


def upgrade(srv):
    """Executed in place, with people on it; valgrind follows."""
    term = srv.term("memory+upgrade", deadline=SLOW).ready()
    for _ in range(2):
        assert srv.berth_ok("upgrade", timeout=SLOW).startswith("berthd was")
    term.send("echo stays_$((1+1))\r")
    term.expect(rb"stays_2\r\n")
    done = srv.ssh("memory", "exit 4", timeout=SLOW)
    assert done.returncode == 4
    term.send("exit 5\r")
    assert term.wait() == 5


def check(srv):
    bad = srv.findings()
    if bad:
        shutil.rmtree(BUILD / "reports", ignore_errors=True)
        shutil.copytree(srv.reports, BUILD / "reports")
    assert not bad, "\n".join(bad) + f"\nall of it is in {BUILD}/reports"
    ended = srv.ended()
    # the first, the second, and the rehearsals of two upgrades
    assert ended.count("berthd") == 4
    assert ended.count("berth-session") >= 6
    assert ended.count("berth-sshd") >= 7


@pytest.mark.timeout(900)
def test_valgrind_finds_nothing_in_any_process(watched):
    box = "memory"
    one = share(watched, box)
    execs(watched, box)
    administer(watched, box)
    upgrade(watched)
    restart(watched)
    again = watched.term(box, deadline=SLOW)
    again.send("echo adopted_$((1+1))\r")
    again.expect(rb"adopted_2\r\n")
    again.send("exit 9\r")
    assert again.wait() == 9
    one.close()
    last = watched.term(f"{box}+last", deadline=SLOW).ready()
    watched.options["session.on_shutdown"] = "kill"
    watched.write_conf()
    watched.proc.send_signal(signal.SIGHUP)
    last.send("echo there_$((1+1))\r")
    last.expect(rb"there_2\r\n")
    assert watched.stop(SLOW) == 0
    wait_for(lambda: not berth.procs.strays(
        str(watched.dir), BUILD, []), SLOW, "nobody left")
    check(watched)
