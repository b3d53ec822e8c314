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


COUNTER = "while :; do echo; sleep 0.02; done >>counter"


def count(srv, box):
    try:
        return (srv.boxes / box / "counter").stat().st_size
    except OSError:
        return 0


def start_counter(srv, box, name="count"):
    before = count(srv, box)
    srv.berth_ok("new", "-s", box, "-n", name, "--", "sh", "-c", COUNTER)
    wait_for(lambda: count(srv, box) > before + 2)


def stands_still(srv, box):
    """False as soon as the counter moves in a third of a second."""
    first = count(srv, box)
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
    for i in range(2):
        if verb == "resume" and phase(srv, box) == "running":
            suspend(srv, box)
        child = subprocess.Popen(
            [str(BUILD / "berth"), "--socket", str(srv.socket), "sandbox",
             verb, box], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        time.sleep(0.006 * i)
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


@pytest.mark.ordinary
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


# ---- life ------------------------------------------------------------------

LIFE = {
    **SERVER,
    "session__stop_grace": "500ms",
    "template sleepy__idle_suspend": "1s",
    "template watched__idle_suspend": "1s",
    "template watched__viewers_wake": "yes",
    "template passing__idle_teardown": "1h",
    "template reread__idle_teardown": "2500ms",
    "template short__lifetime": "2500ms",
    "template brief__lifetime": "5s",
    "template both__idle_suspend": "500ms",
    "template both__idle_teardown": "2500ms",
}


@pytest.fixture(scope="module")
def living(request):
    """One server for all templates that have a life."""
    from conftest import _close, _open
    server = _open(**LIFE)
    server.start()
    yield server
    _close(server)


def create(srv, box, template):
    srv.berth_ok("sandbox", "create", "--template", template, box)


def stays(srv, box, state, seconds=1.3):
    """In that state all the time, asked without waking anybody."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert phase(srv, box) == state
        time.sleep(0.1)


def falls_asleep(srv, box):
    wait_for(lambda: phase(srv, box) == "suspended", 6)


@freezes
def test_idle_counts_from_the_last_who_left(living, box):
    create(living, box, "sleepy")
    start_counter(living, box)
    falls_asleep(living, box)  # a detached session lets it
    assert stands_still(living, box)
    who, why = audit(living, box, "sandbox_suspend")[-1]
    assert (who, why) == (
        None, f"sandbox {box} is suspended: it was idle for 1s")
    term = living.term(f"{box}+count")
    wait_for(lambda: phase(living, box) == "running", 6)
    stays(living, box, "running")
    moves_on(living, box)
    term.close()
    falls_asleep(living, box)
    child = living.spawn(box, "sleep 1.6; echo ran")
    wait_for(lambda: phase(living, box) == "running", 6)
    stays(living, box, "running")
    assert child.communicate(timeout=10)[0] == b"ran\n"
    falls_asleep(living, box)
    # Woken by nobody who stays, it gets its time again.
    living.berth_ok("sandbox", "resume", box)
    assert phase(living, box) == "running"
    falls_asleep(living, box)
    living.berth_ok("sandbox", "rm", box)


LISTEN = """
import socket
s = socket.create_server(("127.0.0.1", 7000))
open("ready", "w").close()
while True:
    with s.accept()[0] as c:
        c.sendall(c.recv(1))
"""


@freezes
def test_a_forwarded_connection_keeps_it_awake(living, box):
    create(living, box, "sleepy")
    living.berth_ok("new", "-s", box, "-n", "server", "--", "python3", "-c",
                    LISTEN)
    wait_for((living.boxes / box / "ready").exists)
    local = free_port()
    tunnel = living.spawn(
        box, opts=("-N", "-L", f"{local}:127.0.0.1:7000"))
    falls_asleep(living, box)  # a tunnel that nobody uses is no use

    def connect():
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", local), 5)

    with wait_for(connect) as s:
        s.settimeout(10)
        wait_for(lambda: phase(living, box) == "running", 6)
        stays(living, box, "running")
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    falls_asleep(living, box)
    tunnel.kill()
    living.berth_ok("sandbox", "rm", box)


@freezes
def test_who_only_watches_counts_where_it_says_so(living, box):
    key = living.add_key(f"watcher-{box}", 'role="viewer"')
    for name, counts in (("sleepy", False), ("watched", True)):
        mine = f"{box}-{name}"
        create(living, mine, name)
        living.berth_ok("new", "-s", mine, "--", "sh", "-c",
                        "echo hello-$((1+1)); exec sleep 60")
        viewer = living.term(mine, key=key)
        viewer.expect("hello-2")
        if not counts:
            falls_asleep(living, mine)
        else:
            stays(living, mine, "running")
            viewer.close()
            falls_asleep(living, mine)
            living.berth_ok("tail", f"{mine}+default")
            assert phase(living, mine) == "suspended"
            viewer = living.term(mine, key=key)
            viewer.expect("hello-2")
            wait_for(lambda: phase(living, mine) == "running", 6)
        viewer.close()
        living.berth_ok("sandbox", "rm", mine)


def ended_by(srv, box, reason, sentence):
    """All that is left of a box tells why it went."""
    def over():
        rows = srv.sessions(box, True)
        return all(r["exited_ms"] for r in rows) and rows

    rows = wait_for(over, 5)
    assert {r["reason"] for r in rows} == {reason}
    assert audit(srv, box, "sandbox_expired") == [(None, sentence)]
    assert len(audit(srv, box, "sandbox_remove")) == 1
    assert not (srv.boxes / box).exists()
    for r in rows:
        if r["kind"] == "pty":
            assert srv.recording(box)["state"] == "complete"
        assert not srv.sql("SELECT 1 FROM attachment WHERE detached_ms IS "
                           f"NULL AND session_id = '{r['id']}'")


@freezes
def test_an_idle_one_is_removed_and_says_so(living, box):
    key = living.add_key(f"watcher-{box}", 'role="viewer"')
    create(living, box, "passing")
    living.berth_ok("new", "-s", box, "--", "sh", "-c",
                    "echo hello-$((1+1)); exec sleep 60")
    viewer = living.term(box, key=key)
    viewer.expect("hello-2")
    # However long that took: it is idle for more than a second now.
    living.options["template passing.idle_teardown"] = "1s"
    living.write_conf()
    living.proc.send_signal(signal.SIGHUP)
    sentence = f"sandbox {box} is removed: it was idle for 1s"
    viewer.expect(re.escape(sentence), 10)
    assert viewer.wait() != 0
    wait_for(lambda: phase(living, box) is None, 10)
    ended_by(living, box, "idle", sentence)


@freezes
def test_a_sleeper_is_removed_in_time_too(living, box):
    create(living, box, "both")
    living.berth_ok("new", "-s", box, "--", "sleep", "60")
    falls_asleep(living, box)
    wait_for(lambda: phase(living, box) is None, 8)
    ended_by(living, box, "idle",
             f"sandbox {box} is removed: it was idle for 2500ms")


def test_a_lifetime_is_over_whoever_is_there_b11(living, box):
    before = time.monotonic()
    create(living, box, "brief")
    child = living.spawn(box, "echo begun; sleep 60")
    term = living.term(box).ready()
    assert child.stdout.readline() == b"begun\n"
    sentence = f"sandbox {box} is removed: its lifetime of 5s is over"
    term.expect(re.escape(sentence), 10)
    assert term.wait() != 0
    err = child.communicate(timeout=10)[1].decode()
    assert child.returncode != 0 and sentence in err, err
    wait_for(lambda: phase(living, box) is None, 10)
    assert 4.9 < time.monotonic() - before < 12
    ended_by(living, box, "lifetime", sentence)
    # The name is free again, and the next one is as young.
    assert living.out(box, "ls") == ""


def test_a_lifetime_goes_on_without_berthd(fresh, box):
    srv = fresh(**LIFE)
    create(srv, box, "short")
    srv.berth_ok("new", "-s", box, "--", "sleep", "60")
    srv.berth_ok("sandbox", "create", f"{box}-other")
    srv.kill()
    time.sleep(2.5)
    srv.start()
    wait_for(lambda: phase(srv, box) is None, 10)
    assert srv.row(box)["reason"] == "lifetime"
    assert phase(srv, f"{box}-other") == "running"


def test_reading_the_configuration_again_changes_a_life(fresh, box):
    srv = fresh(**LIFE)
    create(srv, box, "reread")
    srv.options["template reread.idle_teardown"] = "0"
    srv.options["template late.lifetime"] = "1h"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    create(srv, f"{box}-late", "late")
    time.sleep(2.6)
    if phase(srv, box) is None:
        pytest.fail("the former rule was followed")
    srv.options["template late.lifetime"] = "1s"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: phase(srv, f"{box}-late") is None, 8)


@freezes
def test_an_upgrade_leaves_sleepers_and_watchers_as_they_are(fresh, box):
    srv = fresh(start=False, **LIFE)
    srv.install()
    srv.start()
    create(srv, box, "sleepy")
    srv.berth_ok("new", "-s", box, "--", "sh", "-c",
                 "echo hello-$((1+1)); exec cat")
    falls_asleep(srv, box)
    key = srv.add_key("watcher", 'role="viewer"')
    viewer = srv.term(box, key=key)
    viewer.expect("hello-2")
    typist = srv.term(f"{box}-2").ready()
    suspend(srv, f"{box}-2")
    srv.berth_ok("upgrade")
    assert (phase(srv, box), phase(srv, f"{box}-2")) == (
        "suspended", "suspended")
    # Who only watches does not count for the next program either.
    srv.berth_ok("sandbox", "resume", box)
    falls_asleep(srv, box)
    # And keys wake as they did.
    typist.send("echo typed-$((3+3))\r")
    typist.expect("typed-6", 10)
    assert phase(srv, f"{box}-2") == "running"


@pytest.mark.ordinary
def test_a_template_that_cannot_suspend_is_refused(fresh):
    srv = fresh(start=False, **{"template x__provider": "local",
                                "template x__idle_suspend": "1h"})
    done = run([BUILD / "berthd", "-t", "-c", srv.conf])
    assert done.returncode != 0
    assert b"template x.idle_suspend: provider local cannot suspend" in (
        done.stderr)
