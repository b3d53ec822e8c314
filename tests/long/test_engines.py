"""Real engines behind conf/providers/*.conf (see engines.py). What is asked of berth is the same for each. kubectl is played
by a recorder in tests/blackbox/test_command.py.
"""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "blackbox"))

import berth  # noqa: E402
import files  # noqa: E402
from berth import wait_for  # noqa: E402
from engines import Docker, Lxd, Podman  # noqa: E402

PROVIDERS = HERE.parent.parent / "conf" / "providers"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="explained: engines are root's")


@pytest.fixture(scope="module", params=[Docker, Podman, Lxd],
                ids=lambda c: c.name)
def engine(request):
    one = request.param()
    if not pathlib.Path("/bin/busybox").exists() or not shutil.which(one.program):
        pytest.skip(f"explained: {one.program} is not installed "
                    "(scripts/deps.sh engines)")
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module")
def srv(engine):
    server = berth.Server(start=False, **{
        "access__default_template": engine.template,
        "sandbox__providers": PROVIDERS / f"{engine.template}.conf",
        "session__stop_grace": "2s",
        "template small__provider": engine.template,
        "template small__memory": "64M",
        "template small__pids": "50",
        "template small__cpu": "50",
        f"provider {engine.template}__poll": "2s",
        **engine.options})
    server.start()
    yield server
    for row in server.json("sandbox", "ls"):
        server.berth("sandbox", "rm", row["name"], timeout=60)
    server.close()


@pytest.fixture(scope="module")
def box(srv):
    """One for all tests that do not harm it: making one takes a second."""
    srv.berth_ok("sandbox", "create", "shared", timeout=60)
    return "shared"


def stored(srv, box, name="s"):
    rows = [r for r in srv.sessions(box, True) if r["name"] == name]
    return max(rows, key=lambda r: r["created_ms"])


def phase(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0]["state"] if rows else None


def runs(srv, box, text):
    """True if a process of the sandbox has that in its command line."""
    script = ('for f in /proc/[0-9]*; do p=${f#/proc/}; [ $p = $$ ] || '
              'cat $f/cmdline 2>/dev/null; echo; done')
    found = srv.out(box, script).replace("\0", " ").splitlines()
    return any(text in line and "cmdline" not in line for line in found)


# ---- the same for each ------------------------------------------------------


def test_streams_code_and_end_of_input(srv, box):
    done = srv.ssh(box, "cat; echo err >&2; exit 7", input=b"in\0\xff\n" * 999)
    assert done.returncode == 7
    assert done.stdout == b"in\0\xff\n" * 999
    assert done.stderr == b"err\n"


def test_place_and_environment(srv, engine, box):
    out = srv.out(box, 'echo "$HOME,$(pwd),$BERTH_SANDBOX"; tty; id -u')
    where, terminal, uid = out.splitlines()
    assert where == f"{engine.home},{engine.home},{box}"
    assert terminal == "not a tty"
    if engine.name != "lxd":
        assert uid != "0"


def test_a_large_stream_is_whole(srv, box):
    done = srv.ssh(box, "seq 1 300000 | cat", timeout=60)
    want = "".join(f"{i}\n" for i in range(1, 300001)).encode()
    assert done.stdout == want


def test_terminal_size_keys_and_code(srv, box):
    term = srv.term(box, cols=90, rows=20).ready()
    term.send("tty; stty size\r")
    term.expect(r"/dev/(pts/\d+|console)\r\n20 90")
    term.resize(100, 30)
    term.send("sleep 1; stty size\r")
    term.expect("30 100")
    term.send("sleep 1000\r")
    wait_for(lambda: runs(srv, box, "sleep 1000"))
    term.send("\x03")
    term.send("echo back=$?\r")
    term.expect("back=130")
    # Keys that engines' clients take for themselves by default.
    term.send("stty -ixon; cat -v\r")
    wait_for(lambda: runs(srv, box, "cat -v"))
    term.send("\x10\x11abc\r")
    term.expect(r"\^P\^Qabc\r\n\^P\^Qabc")
    term.send("\x03")
    wait_for(lambda: not runs(srv, box, "cat -v"))
    term.send("exit 5\r")
    assert term.wait(20) == 5


def test_a_shared_session_outlives_its_viewers(srv, box):
    term = srv.term(f"{box}+live").ready()
    term.send("mark=here; echo set-$mark\r")
    term.expect("set-here")
    term.close()
    wait_for(lambda: stored(srv, box, "live")["attached"] == 0)
    term = srv.term(f"{box}+live")
    term.send("echo still-$mark\r")
    term.expect("still-here")
    term.send("exit\r")
    term.wait(20)


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_signals_arrive(srv, box, name):
    srv.berth_ok("new", "-s", box, "-n", name, "--no-pty", "--", "bash", "-c",
                 f"trap 'echo got; exit 9' {name}; echo set; "
                 "while :; do sleep .1; done")
    wait_for(lambda: "set" in srv.berth_ok("tail", f"{box}+{name}"))
    srv.berth_ok("kill", f"{box}+{name}", f"-{name}")
    wait_for(lambda: stored(srv, box, name)["status"] == "exited")
    assert stored(srv, box, name)["exit_code"] == 9


@pytest.mark.parametrize("pty", [True, False])
def test_kill_leaves_nothing_inside(srv, box, pty):
    """The client of an engine dies, and what it started goes with it."""
    mark = 2000 + pty
    srv.berth_ok("new", "-s", box, "-n", f"k{mark}",
                 *([] if pty else ["--no-pty"]), "--", "bash", "-c",
                 f"trap '' HUP TERM INT; sleep {mark} & sleep {mark}")
    wait_for(lambda: runs(srv, box, f"sleep {mark}"))
    srv.berth_ok("kill", f"{box}+k{mark}", "-KILL")
    wait_for(lambda: stored(srv, box, f"k{mark}")["status"] == "killed")
    wait_for(lambda: not runs(srv, box, f"sleep {mark}"), 20)


def test_a_vanished_client_ends_its_command(srv, box):
    child = srv.spawn(box, "sleep 3001")
    wait_for(lambda: runs(srv, box, "sleep 3001"))
    child.kill()
    wait_for(lambda: not runs(srv, box, "sleep 3001"), 20)


def test_files_by_sftp(srv, box, tmp_path):
    data = os.urandom(1_000_000)
    (tmp_path / "a").write_bytes(data)
    done = files.sftp(srv, box, f"put {tmp_path}/a copy\n"
                                f"get copy {tmp_path}/b\nrm copy\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b").read_bytes() == data


def test_ports_by_a_relay(srv, box):
    server = srv.spawn(box, "echo hello | nc -l -p 7777")
    local = berth.free_port()
    client = srv.spawn(box, opts=("-N", "-L", f"{local}:localhost:7777"))

    def hear():
        try:
            with socket.create_connection(("127.0.0.1", local), 5) as there:
                return there.recv(100) == b"hello\n"
        except OSError:
            return False
    wait_for(hear, 30)
    client.kill()
    server.kill()


def test_stats_from_inside(srv, box):
    (row,) = srv.json("sandbox", "stats", box)
    assert row["memory_bytes"] is None or row["memory_bytes"] > 0
    assert row["processes"] is None or row["processes"] > 0
    assert row["net_rx_bytes"] >= 0


def test_limits_are_the_engine_s(srv, engine):
    srv.berth_ok("sandbox", "create", "-t", "small", "small", timeout=60)
    done = srv.ssh("small", "x=$(head -c 200000000 /dev/zero | cat -v); echo no")
    assert b"no" not in done.stdout
    srv.berth_ok("sandbox", "rm", "small", timeout=60)
    assert not engine.is_there("small")


def test_suspend_and_resume(srv, engine):
    box = f"sus-{engine.name}"
    srv.berth_ok("sandbox", "create", box, timeout=60)
    srv.berth_ok("new", "-s", box, "-n", "s", "--no-pty", "--", "bash", "-c",
                 "i=0; while :; do echo $((i+=1)); sleep .05; done")
    wait_for(lambda: "5" in srv.berth_ok("tail", f"{box}+s"))
    srv.berth_ok("sandbox", "suspend", box)
    assert phase(srv, box) == "suspended"
    time.sleep(0.5)
    before = srv.berth_ok("tail", f"{box}+s")
    time.sleep(1)
    assert srv.berth_ok("tail", f"{box}+s") == before
    srv.berth_ok("sandbox", "resume", box)
    wait_for(lambda: srv.berth_ok("tail", f"{box}+s") != before)
    srv.berth_ok("sandbox", "rm", box, timeout=60)


def test_snapshot_and_restore(srv, engine):
    """By the tar of the image, which knows less than the one of this host."""
    box = f"snap-{engine.name}"
    srv.out(box, "echo one > a; mkdir d .h; echo two > d/b; chmod 750 d/b; "
                 "ln -s nowhere l; dd if=/dev/zero of=big bs=1M count=20")
    ask = ("cat a d/b; stat -c %a:%u:%g d/b; readlink -n l 2>/dev/null; "
           "ls -A; wc -c < big")
    before = srv.out(box, ask)
    snap = srv.berth_ok("sandbox", "snapshot", box, timeout=60).strip()
    (row,) = srv.json("sandbox", "snapshots", box)
    assert row["bytes"] < 1 << 20
    srv.out(box, "echo other > a; rm -r d; echo x > new")
    srv.berth_ok("sandbox", "restore", snap, timeout=60)
    assert srv.out(box, ask) == before
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}2", timeout=60)
    assert srv.out(f"{box}2", ask) == before
    srv.berth_ok("sandbox", "forget", snap)
    for name in (box, f"{box}2"):
        srv.berth_ok("sandbox", "rm", name, timeout=60)


def test_a_lost_sandbox_is_noticed_and_made_again(srv, engine):
    box = f"lost-{engine.name}"
    srv.out(box, "echo kept > file")
    engine.lose(box)
    wait_for(lambda: phase(srv, box) == "failed", 15)
    if engine.home == "/workspace":
        assert srv.out(box, "cat file") == "kept\n", "the workspace stays"
    else:
        assert srv.out(box, "echo again") == "again\n"
    srv.berth_ok("sandbox", "rm", box, timeout=60)
    assert not engine.is_there(box)


def test_removing_twice_and_behind_its_back(srv, engine):
    box = f"twice-{engine.name}"
    srv.berth_ok("sandbox", "create", box, timeout=60)
    engine.lose(box)
    srv.berth_ok("sandbox", "rm", box, timeout=60)
    assert srv.berth("sandbox", "rm", box).returncode == 3


def test_a_new_berthd_finds_everything(srv, engine, box):
    srv.berth_ok("new", "-s", box, "-n", "stay", "--", "sleep", "4001")
    wait_for(lambda: runs(srv, box, "sleep 4001"))
    srv.kill()
    srv.start()
    assert stored(srv, box, "stay")["status"] == "running"
    assert runs(srv, box, "sleep 4001")
    srv.berth_ok("kill", f"{box}+stay")
    wait_for(lambda: not runs(srv, box, "sleep 4001"), 20)
