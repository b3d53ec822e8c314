"""Sandboxes that sleep, wake and end by themselves: what is suspended stands
still and goes on where it was; whoever comes back sees the last screen at once;
what only looks wakes nobody; what is idle or old goes, and says so.
"""

import contextlib
import os
import re
import signal
import socket
import sqlite3
import subprocess
import threading
import time

import pytest

from berth import BUILD, IS_ROOT, Failure, free_port, run, wait_for

SERVER = {
    "access__default_template": "native",
}


def has_groups():
    """Can this user make a control group that freezes, as berthd would?"""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as f:
            own = [r.split(":", 2) for r in f.read().splitlines()]
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounts = [r.split() for r in f]
    except OSError:
        return False
    for _, names, path in own:
        for m in mounts:
            kind = m[m.index("-") + 1]
            if (not names and kind == "cgroup2") or (
                    "freezer" in names.split(",") and kind == "cgroup" and
                    "freezer" in m[-1].split(",")):
                if os.access(m[4] + path, os.W_OK):
                    return True
    return False


freezes = pytest.mark.skipif(
    not IS_ROOT and not has_groups(),
    reason="explained: no control group is delegated to this user")


def row(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0] if rows else None


def phase(srv, box):
    found = row(srv, box)
    return found["state"] if found else None


def audit(srv, box, event):
    """(identity, detail) of the rows of an event, the latest last."""
    with contextlib.closing(sqlite3.connect(srv.state / "berth.db")) as db:
        return db.execute(
            "SELECT identity, detail FROM audit WHERE sandbox = ? AND "
            "event = ? ORDER BY id", (box, event)).fetchall()


COUNTER = "i=0; while :; do i=$((i+1)); echo $i >counter; sleep 0.02; done"


def count(srv, box):
    try:
        return int((srv.boxes / box / "counter").read_text() or 0)
    except (OSError, ValueError):
        return 0


def start_counter(srv, box, name="count"):
    srv.berth_ok("new", "-s", box, "-n", name, "--", "sh", "-c", COUNTER)
    wait_for(lambda: count(srv, box) > 2)


def stands_still(srv, box):
    """False as soon as the counter moves in a third of a second."""
    first = wait_for(lambda: count(srv, box))
    time.sleep(0.3)
    return count(srv, box) == first


def moves_on(srv, box):
    first = count(srv, box)
    wait_for(lambda: count(srv, box) > first, 5, "the counter goes on")


def suspend(srv, box):
    srv.berth_ok("sandbox", "suspend", box)
    assert phase(srv, box) == "suspended"


# ---- suspend and resume ----------------------------------------------------


@freezes
def test_a_suspended_counter_stands_still_and_goes_on(srv, box):
    start_counter(srv, box)
    suspend(srv, box)
    assert stands_still(srv, box)
    srv.berth_ok("sandbox", "suspend", box)
    last = count(srv, box)
    srv.berth_ok("sandbox", "resume", box)
    assert phase(srv, box) == "running"
    wait_for(lambda: count(srv, box) > last)
    # Where it was: the loop lost no step.
    assert count(srv, box) < last + 200
    srv.berth_ok("sandbox", "resume", box)
    assert [a[0] for a in audit(srv, box, "sandbox_suspend")] != []
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_exec_into_a_suspended_sandbox_resumes_it_f10(srv, box):
    """It neither hangs nor leaves a helper behind."""
    start_counter(srv, box)
    suspend(srv, box)
    before = time.monotonic()
    assert srv.out(box, "echo in") == "in\n"
    assert time.monotonic() - before < 10
    assert phase(srv, box) == "running"
    moves_on(srv, box)
    who, why = audit(srv, box, "sandbox_resume")[-1]
    assert (who, why) == ("tester", "wanted by tester")
    # Many at the same time, with a suspend in between.
    suspend(srv, box)
    children = [srv.spawn(box, f"echo {i}") for i in range(4)]
    for i, child in enumerate(children):
        out, err = child.communicate(timeout=20)
        assert (child.returncode, out) == (0, b"%d\n" % i), err
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_forwards_and_files_wake_it(srv, box):
    start_counter(srv, box)
    suspend(srv, box)
    batch = srv.dir / "batch"
    batch.write_text("ls\n")
    args = srv.ssh_args(box)
    port = args[args.index("-p") + 1]
    done = run(["sftp", "-q", "-b", batch, "-P", port,
                *[a for a in args[1:args.index("-p")]], f"{box}@127.0.0.1"])
    assert done.returncode == 0 and b"counter" in done.stdout, done.stderr
    assert phase(srv, box) == "running"
    suspend(srv, box)
    local = free_port()
    child = srv.spawn(box, opts=("-N", "-L", f"{local}:127.0.0.1:1",
                                 "-o", "ExitOnForwardFailure=yes"))

    def connects():
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", local), 5).close()
            return True

    wait_for(connects)
    wait_for(lambda: phase(srv, box) == "running", 10)
    child.kill()
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_an_attach_shows_the_last_screen_and_wakes_it(srv, box):
    term = srv.term(box).ready()
    term.send("echo the-last-$((1+1))-line\r")
    term.expect("the-last-2-line\r")
    term.close()
    start_counter(srv, box)
    suspend(srv, box)
    term = srv.term(box)
    term.expect("the-last-2-line")
    wait_for(lambda: phase(srv, box) == "running", 10)
    moves_on(srv, box)
    who, why = audit(srv, box, "sandbox_resume")[-1]
    assert who == "tester" and re.fullmatch("attach to ses-[0-9a-f]+", why)
    term.send("echo awake-$((2+3))\r")
    term.expect("awake-5")
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_keys_of_who_is_there_wake_it(srv, box):
    term = srv.term(box).ready()
    start_counter(srv, box)
    suspend(srv, box)
    assert stands_still(srv, box)
    term.send("echo typed-$((3+3))\r")
    term.expect("typed-6", 10)
    assert phase(srv, box) == "running"
    assert audit(srv, box, "sandbox_resume")[-1][1].startswith("keys in ses-")
    # And again, and by the administrator's keys too.
    suspend(srv, box)
    term.send("echo again-$((3+4))\r")
    term.expect("again-7", 10)
    suspend(srv, box)
    srv.berth_ok("send", f"{box}+default", "echo sent-$((4+4))\n")
    term.expect("sent-8", 10)
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_whoever_only_looks_wakes_nobody(srv, box):
    term = srv.term(box).ready()
    term.send("echo on-the-$((1+0))-screen\r")
    term.expect("on-the-1-screen\r")
    term.close()
    suspend(srv, box)
    ref = f"{box}+default"
    assert "on-the-1-screen" in srv.berth_ok("screen", ref)
    assert "on-the-1-screen" in srv.berth_ok("tail", ref)
    for verb in (("who",), ("ls",), ("info", ref), ("rec", "ls"),
                 ("sandbox", "stats", box)):
        srv.berth_ok(*verb)
    key = srv.add_key(f"watcher-{box}", 'role="viewer"')
    viewer = srv.term(box, key=key)
    viewer.expect("on-the-1-screen")
    viewer.send("x")
    time.sleep(0.3)
    assert phase(srv, box) == "suspended"
    assert audit(srv, box, "sandbox_resume") == []
    srv.berth_ok("sandbox", "rm", box)


@freezes
def test_a_suspended_sandbox_and_its_sessions_end_in_time_f10(srv, box):
    start_counter(srv, box)
    suspend(srv, box)
    before = time.monotonic()
    srv.berth_ok("kill", f"{box}+count")
    wait_for(lambda: srv.row(box)["status"] in ("killed", "exited"), 8)
    start_counter(srv, box, "other")
    suspend(srv, box)
    srv.berth_ok("sandbox", "rm", box)
    assert time.monotonic() - before < 15
    assert phase(srv, box) is None
    assert srv.row(box)["status"] == "killed"


@freezes
def test_a_killed_berthd_finds_a_suspended_sandbox_again(fresh, box):
    srv = fresh(**SERVER)
    term = srv.term(box).ready()
    start_counter(srv, box)
    suspend(srv, box)
    srv.kill()
    srv.start()
    assert phase(srv, box) == "suspended"
    assert stands_still(srv, box)
    # Keys are told to the new one too, once the keeper was taken over.
    term.close()
    term = srv.term(box)
    wait_for(lambda: phase(srv, box) == "running", 10)
    term.send("echo back-$((4+5))\r")
    term.expect("back-9")
    suspend(srv, box)
    # It ends a suspended one at its own end, in time.
    before = time.monotonic()
    assert srv.stop() == 0
    assert time.monotonic() - before < 8
    srv.start()
    assert phase(srv, box) == "failed"
    srv.berth_ok("sandbox", "rm", box)


@freezes
@pytest.mark.parametrize("verb", ["suspend", "resume"])
def test_kill_of_berthd_in_between_leaves_what_can_be_removed(
        fresh, box, verb):
    srv = fresh(**SERVER)
    start_counter(srv, box)
    for i in range(3):
        if verb == "resume" and phase(srv, box) == "running":
            suspend(srv, box)
        child = subprocess.Popen(
            [str(BUILD / "berth"), "--socket", str(srv.socket), "sandbox",
             verb, box], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        time.sleep(0.004 * i)
        srv.kill()
        child.wait(10)
        srv.start()
        assert phase(srv, box) in ("running", "suspended")
        # However it was left: it lets people in.
        assert srv.out(box, "echo in") == "in\n"
        assert phase(srv, box) == "running"
        moves_on(srv, box)
    srv.berth_ok("sandbox", "rm", box)
    assert phase(srv, box) is None


def refused(srv, *args):
    done = srv.berth(*args)
    assert done.returncode == 5, (done.returncode, done.stderr)
    text = done.stderr.decode()
    assert "unsupported" in text and text.count("\n") == 1, text
    return text


def test_who_cannot_suspend_says_so(srv, fresh, box):
    srv.berth_ok("sandbox", "create", "--template", "local", box)
    for verb in ("suspend", "resume"):
        assert "provider local" in refused(srv, "sandbox", verb, box)
    if not IS_ROOT:
        return
    # An ordinary user has no control groups; the rest of native goes on.
    mine = fresh(start=False, **SERVER)
    mine.prefix = ["setpriv", "--reuid", "nobody", "--regid", "nogroup",
                   "--clear-groups"]
    run(["chown", "-R", "nobody:nogroup", mine.dir]).check_returncode()
    mine.start()
    mine.berth_ok("sandbox", "create", box)
    assert "no control group" in refused(mine, "sandbox", "suspend", box)
    assert phase(mine, box) == "running"
    assert mine.out(box, "echo in") == "in\n"


def has_v1():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return re.search(r" - cgroup \S+ \S*\bfreezer\b", f.read())


@pytest.mark.skipif(not IS_ROOT or not has_v1(),
                    reason="explained: wants the freezer of v1, and root")
def test_the_freezer_of_v1_does_where_v2_is_not(fresh, box):
    """Without v2 a frozen process does not even die of a KILL."""
    srv = fresh(start=False, prefix=[
        "unshare", "-m", "--propagation", "private", "sh", "-c",
        "for m in $(sed -n 's/^[^ ]* [^ ]* [^ ]* [^ ]* \\([^ ]*\\) .* - "
        "cgroup2 .*/\\1/p' /proc/self/mountinfo); do umount $m || exit 1; "
        "done; exec \"$@\"", "sh"], **SERVER)
    srv.start()
    start_counter(srv, box)
    text = (srv.boxes / f".{box}.box").read_text()
    assert "cgroup-freezer /" in text and "\ncgroup /" not in text
    suspend(srv, box)
    assert stands_still(srv, box)
    assert srv.out(box, "echo in") == "in\n"
    moves_on(srv, box)
    suspend(srv, box)
    srv.berth_ok("kill", f"{box}+count")
    wait_for(lambda: srv.row(box)["status"] in ("killed", "exited"), 8)
    start_counter(srv, box, "other")
    suspend(srv, box)
    srv.berth_ok("sandbox", "rm", box)
    assert phase(srv, box) is None
    group = re.search(r"cgroup-freezer (\S+)", text).group(1)
    assert not os.path.exists(group)
    start_counter(srv, f"{box}-2")
    suspend(srv, f"{box}-2")
    assert srv.stop() == 0
