"""What the processes of a release may still do. A sanitizer build keeps what
sanitizers need, so these tests run the release whatever BERTH_BUILD says.
"""

import errno
import os
import pwd
import re
import signal
import subprocess
import sys
import time

import pytest

import procs
from berth import IS_ROOT, RELEASE, run, wait_for

SERVER = {"build": RELEASE}
PROGRAMS = ("berthd", "berth-sshd", "berth-session", "berth-sandbox",
            "berth-archive", "berth")
CAP_KILL = 1 << 5

pytestmark = pytest.mark.skipif(
    not all((RELEASE / name).exists() for name in PROGRAMS),
    reason="explained: no release build here",
)


def status(pid):
    """/proc/PID/status as a dictionary of stripped strings."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return {k: v.strip() for k, v in (x.split(":", 1) for x in f)}


def uids(name):
    return "\t".join([str(pwd.getpwnam(name).pw_uid)] * 4)


def child(server, comm):
    """The one process of that name below berthd."""
    return wait_for(
        lambda: next((p for p in procs.descendants(server.proc.pid)
                      if p.comm == comm), None),
        10, comm,
    )


def leader(keeper):
    found = [p for p in procs.children(keeper.pid)
             if p.comm != "berth-signaller"]
    assert len(found) == 1, found
    return found[0]


def keeper_of(server, box):
    pid = server.session(box)["pid"]
    return procs.get(procs.get(pid).ppid)


LOOK = """
import ctypes, os, sys
os.setgroups([]); os.setresgid(*[int(sys.argv[3])] * 3)
os.setresuid(*[int(sys.argv[2])] * 3)
pid, libc = int(sys.argv[1]), ctypes.CDLL(None, use_errno=True)
try:
    open(f"/proc/{pid}/mem", "rb")
except PermissionError:
    print("memory closed")
libc.ptrace.restype = ctypes.c_long
if libc.ptrace(16, pid, None, None) < 0:
    print("ptrace", ctypes.get_errno())
"""


def assert_nobody_looks_in(pid):
    """Not even its own uid: its memory is root's, ptrace is refused."""
    st = status(pid)
    uid, gid = st["Uid"].split()[0], st["Gid"].split()[0]
    assert os.stat(f"/proc/{pid}/mem").st_uid == 0
    if not IS_ROOT:
        return
    done = run([sys.executable, "-c", LOOK, str(pid), uid, gid])
    assert done.stdout.decode().split("\n")[:2] == [
        "memory closed", f"ptrace {errno.EPERM}"
    ], done


@pytest.mark.ordinary
def test_a_connection_may_do_little(srv, box):
    """Whoever finds a hole in the SSH library is in a process without new
    privileges, whose system calls are counted, and that others of its uid
    cannot enter.
    """
    term = srv.term(box).ready()
    st = status(child(srv, "berth-sshd").pid)
    assert st["NoNewPrivs"] == "1"
    assert st["Seccomp"] == "2"
    assert int(st["CapEff"], 16) == int(st["CapPrm"], 16) == 0
    assert_nobody_looks_in(child(srv, "berth-sshd").pid)
    term.send("exit 4\r")
    assert term.wait() == 4


def test_a_connection_of_root_has_no_files(srv, box, as_root):
    """An uid of its own, no group, and a root directory that is empty, where
    not even root can put anything.
    """
    srv.term(box).ready()
    pid = child(srv, "berth-sshd").pid
    st = status(pid)
    assert st["Uid"] == uids("berth-net")
    assert st["Groups"] == ""
    root = f"/proc/{pid}/root"
    assert os.readlink(root).endswith("(deleted)")
    assert os.readlink(f"/proc/{pid}/cwd") == os.readlink(root)
    assert os.listdir(root) == []
    with pytest.raises(FileNotFoundError):
        os.mkdir(f"{root}/x")
    assert not [n for n in os.listdir("/run") if n.startswith("berth-empty-")]


@pytest.mark.ordinary
def test_every_algorithm_gets_by_with_these_calls(srv, box):
    """A key exchange or cipher that needed another call would be cut off."""
    for option in (
        "KexAlgorithms=curve25519-sha256",
        "KexAlgorithms=ecdh-sha2-nistp256",
        "KexAlgorithms=ecdh-sha2-nistp521",
        "KexAlgorithms=diffie-hellman-group14-sha256",
        "KexAlgorithms=diffie-hellman-group16-sha512",
        "Ciphers=chacha20-poly1305@openssh.com",
        "Ciphers=aes256-gcm@openssh.com",
        "Ciphers=aes128-ctr",
        "RekeyLimit=100K",
    ):
        out = srv.out(box, "seq 60000; cat", opts=["-o", option],
                      input=b"x" * 300000)
        assert out.endswith("\n60000\n" + "x" * 300000), option
    assert "sshd_forbidden" not in srv.log()
    assert "sshd_crashed" not in srv.log()


@pytest.mark.ordinary
def test_a_forbidden_call_is_a_line_in_the_log(srv, box):
    """SIGSYS is what the kernel sends for one."""
    term = srv.term(box).ready()
    pid = child(srv, "berth-sshd").pid
    os.kill(pid, signal.SIGSYS)
    term.wait()
    wait_for(
        lambda: re.search(r"err berthd\[\d+\] sshd_forbidden conn=\S+ addr=\S+"
                          r' why="[^"]*system call', srv.log()),
        10, "a line about it",
    )


@pytest.mark.ordinary
def test_a_keeper_may_do_little(srv, box):
    srv.term(box).ready()
    keeper = keeper_of(srv, box)
    st = status(keeper.pid)
    assert keeper.comm == "berth-session"
    assert st["NoNewPrivs"] == "1"
    assert st["Seccomp"] == "2"
    assert int(st["CapEff"], 16) == int(st["CapPrm"], 16) == 0
    assert_nobody_looks_in(keeper.pid)
    for thread in os.listdir(f"/proc/{keeper.pid}/task"):
        with open(f"/proc/{keeper.pid}/task/{thread}/status") as f:
            assert "Seccomp:\t2" in f.read()


def test_a_keeper_of_root_is_berth_before_and_after_output(srv, box, as_root):
    """And what it started is not touched by what it gave up."""
    srv.berth_ok("new", "-s", box, "-n", "default", "--", "sh", "-c",
                 "read x; echo got $x; exec sleep 600")
    keeper = keeper_of(srv, box)
    assert status(keeper.pid)["Uid"] == uids("berth")
    assert status(keeper.pid)["Groups"] == ""
    srv.berth_ok("send", f"{box}+default", "it\n")
    wait_for(lambda: b"got it" in srv.berth("tail", f"{box}+default").stdout,
             10, "output")
    assert status(keeper.pid)["Uid"] == uids("berth")
    st = status(leader(keeper).pid)
    assert st["Uid"] == uids("berth-box")
    assert (st["NoNewPrivs"], st["Seccomp"]) == ("0", "0")
    assert os.stat(f"/proc/{leader(keeper).pid}/mem").st_uid == pwd.getpwnam(
        "berth-box").pw_uid
    srv.berth_ok("kill", f"{box}+default")
    wait_for(lambda: not procs.is_alive(keeper.pid), 10, "the keeper's end")


def test_the_signaller_may_signal_and_nothing_else(srv, box, as_root):
    """It has one capability, no uid of root's, and holds neither the lock nor
    the terminal; it ends with its keeper, however that ends.
    """
    srv.term(box).ready()
    keeper = keeper_of(srv, box)
    stub = [p for p in procs.children(keeper.pid)
            if p.comm == "berth-signaller"]
    assert len(stub) == 1
    st = status(stub[0].pid)
    assert st["Uid"] == uids("berth")
    assert st["Groups"] == ""
    assert int(st["CapEff"], 16) == int(st["CapPrm"], 16) == CAP_KILL
    assert (st["NoNewPrivs"], st["Seccomp"]) == ("1", "2")
    held = {n: os.readlink(f"/proc/{stub[0].pid}/fd/{n}")
            for n in os.listdir(f"/proc/{stub[0].pid}/fd")}
    assert sorted(held) == ["0", "1", "2", "3"]
    assert held["0"] == held["1"] == "/dev/null"
    assert held["3"].startswith("socket:")
    assert_nobody_looks_in(stub[0].pid)
    left = procs.in_session(leader(keeper).pid)
    os.kill(keeper.pid, signal.SIGKILL)
    wait_for(lambda: not procs.is_alive(stub[0].pid), 5, "its end")
    procs.kill(left)
    wait_for(lambda: "keeper_killed" in srv.log(), 10, "a line about it")


def test_the_signaller_of_an_ordinary_end_is_gone(srv, box, as_root):
    term = srv.term(box).ready()
    keeper = keeper_of(srv, box)
    family = procs.children(keeper.pid)
    assert len(family) == 2
    term.send("exit 0\r")
    assert term.wait() == 0
    wait_for(lambda: not any(procs.is_alive(p.pid)
                             for p in [keeper, *family]), 10, "nobody left")


@pytest.mark.parametrize("by", ["verb", "client"])
def test_a_session_without_a_signaller_can_be_stopped(srv, box, as_root, by):
    """It serves on; who must end it and cannot leaves that to the manager,
    be it asked for or because the only client of a process is gone.
    """
    if by == "verb":
        client = srv.term(box).ready()
    else:
        client = srv.spawn(box, "sleep 4322")
    keeper = keeper_of(srv, box)
    left = procs.in_session(leader(keeper).pid)
    [stub] = [p for p in procs.children(keeper.pid)
              if p.comm == "berth-signaller"]
    os.kill(stub.pid, signal.SIGKILL)
    wait_for(lambda: len(procs.children(keeper.pid)) == 1, 10, "its end")
    if by == "verb":
        client.send("echo st''ill\r")
        client.expect(rb"still\r?\n")
        srv.berth_ok("kill", f"{box}+default")
    else:
        client.kill()
    wait_for(lambda: not any(procs.is_alive(p.pid) for p in [keeper, *left]),
             15, "all dead")
    assert srv.row(box)["status"] == "lost"
    assert "session_abandoned" in srv.log()
    assert srv.out(box, "echo next") == "next\n"


TRAP = """python3 -c '
import os, signal, subprocess, time
signal.signal(signal.SIGUSR1, lambda *a: print("go" + "t usr1", flush=True))
signal.signal(signal.SIGWINCH, lambda *a: print(
    "si" + "ze", *os.get_terminal_size(), flush=True))
for s in (signal.SIGHUP, signal.SIGTERM):
    signal.signal(s, signal.SIG_IGN)
d = subprocess.Popen(["setsid", "sleep", "4321"])
print("pids", os.getpid(), d.pid, flush=True)
try:
    while True: time.sleep(0.05)
except KeyboardInterrupt:
    print("go" + "t int", flush=True)
    while True: time.sleep(0.05)
'\r"""


@pytest.mark.ordinary
def test_signals_reach_what_is_not_of_the_keepers_uid(srv, box):
    """By a viewer, by the command line, by the terminal; and at the end KILL
    for who ignores HUP and TERM, a daemon with a session of its own included.
    """
    term = srv.term(box).ready()
    term.send(TRAP)
    found = term.expect(rb"pids (\d+) (\d+)\r\n")
    pids = [int(found.group(1)), int(found.group(2))]
    srv.berth_ok("kill", f"{box}+default", "-USR1")
    term.expect("got usr1")
    term.resize(91, 31)
    term.expect("size 91 31")
    term.send("\x03")
    term.expect("got int")
    srv.berth_ok("kill", f"{box}+default")
    wait_for(lambda: not any(procs.is_alive(p) for p in pids), 15, "all dead")
    assert term.wait() != 0
    assert "signaller_failed" not in srv.log()[srv.mark:]


def test_a_stop_leaves_everybody_else_alone(srv, box, as_root):
    """Another sandbox has the same uid: only descent tells them apart."""
    terms = [srv.term(box).ready(), srv.term(f"{box}x").ready()]
    other = srv.session(f"{box}x")["pid"]
    bystander = subprocess.Popen(["sleep", "600"])
    try:
        srv.berth_ok("kill", f"{box}+default")
        terms[0].wait()
        time.sleep(0.3)  # a wrong signal would be on its way
        assert procs.is_alive(other)
        assert bystander.poll() is None
        terms[1].send("echo still''here\r")
        terms[1].expect("stillhere")
    finally:
        bystander.kill()
        bystander.wait()


def test_where_proc_hides_processes_the_keeper_stays_root(fresh, box, as_root):
    """It could not see whom it must stop, and says so."""
    srv = fresh(
        build=RELEASE,
        prefix=["unshare", "-m", "sh", "-c",
                "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"],
    )
    srv.term(box).ready()
    pid = wait_for(lambda: srv.session(box)["pid"], 10, "the session")
    keeper = procs.get(procs.get(pid).ppid)
    assert status(keeper.pid)["Uid"] == uids("root")
    assert status(keeper.pid)["Seccomp"] == "2"
    assert "keeper_stays_root" in srv.log()
    srv.berth_ok("kill", f"{box}+default")
    wait_for(lambda: not procs.is_alive(pid), 10, "the end of the shell")


@pytest.mark.ordinary
def test_doctor_says_whether_it_is_confined(srv):
    text = srv.berth("doctor").stdout.decode()
    assert re.search(r"^ok +confinement +on$", text, re.M), text


@pytest.mark.ordinary
def test_berthd_is_not_to_be_looked_into(srv):
    assert os.stat(f"/proc/{srv.proc.pid}/mem").st_uid == 0
