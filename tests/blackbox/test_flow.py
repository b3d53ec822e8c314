"""A store that is locked, a disk that is full or stands still: noticed, said,
survived; nobody who types waits for them. Numbers are the field cases'.
"""

import pathlib
import sqlite3
import time

import pytest

from berth import run, wait_for
from test_recording import parse, plain


# ---- the store ------------------------------------------------------------------


@pytest.fixture
def locked():
    """Locks the store of a server as an admin with a long transaction does."""
    held = []

    def lock(srv):
        db = sqlite3.connect(srv.state / "berth.db", isolation_level=None,
                             timeout=10)
        db.execute("BEGIN EXCLUSIVE")
        held.append(db)
        return db

    yield lock
    for db in held:
        db.close()


def test_a_locked_store_delays_no_session(fresh, box, locked):
    """Three seconds: shells and attaches go on, a new session waits for the
    lock and no longer, and every row is there afterwards.
    """
    srv = fresh()
    term = srv.term(box).ready()
    db = locked(srv)
    end = time.monotonic() + 3
    slowest = 0.0
    n = 0
    while time.monotonic() < end:
        start = time.monotonic()
        n += 1
        term.send(f"echo a''b{n}\r")
        term.expect(rf"ab{n}\r?\n")
        slowest = max(slowest, time.monotonic() - start)
    assert slowest < 2 and n > 5
    other = srv.term(box).ready()
    late = srv.term(f"{box}+new")
    time.sleep(0.5)
    db.execute("ROLLBACK")
    late.ready()
    late.send("exit 3\r")
    assert late.wait() == 3
    assert srv.row(box, "new")["exit_code"] == 3
    wait_for(lambda: len(srv.json("who")) == 2)
    term.send("exit 4\r")
    assert term.wait() == 4 and other.wait() == 4
    assert srv.row(box, "default")["exit_code"] == 4


def test_a_store_locked_for_long_is_a_sentence(fresh, box, locked):
    """The row of a new session waits five seconds, then the login hears why."""
    srv = fresh()
    term = srv.term(box).ready()
    db = locked(srv)
    start = time.monotonic()
    got = srv.ssh(box, "echo never", timeout=30)
    assert 4 < time.monotonic() - start < 15
    assert got.returncode == 255 and got.stdout == b""
    assert b"store" in got.stderr and got.stderr.count(b"\n") == 1
    term.ready()
    wait_for(lambda: "store_stuck" in srv.log())
    db.execute("ROLLBACK")
    assert srv.out(box, "echo again") == "again\n"
    assert "store_moving" in srv.log()


@pytest.fixture
def disk(tmp_path, as_root):
    """Small file systems of a test's own; unmounted, and thawed, at its end."""
    mounted = []

    def mount(kind, size):
        at = tmp_path / f"disk{len(mounted)}"
        at.mkdir(mode=0o700)
        if kind == "tmpfs":
            args = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700",
                    "tmpfs", at]
        else:
            image = tmp_path / f"image{len(mounted)}"
            with image.open("wb") as f:
                f.truncate(size)
            made = run(["/usr/sbin/mkfs.ext4", "-q", image])
            assert made.returncode == 0, made.stderr
            args = ["mount", "-o", "loop", image, at]
        if run(args).returncode != 0:
            pytest.skip("explained: file systems cannot be mounted here")
        mounted.append(at)
        at.chmod(0o700)
        return at

    yield mount
    for at in mounted:
        run(["/usr/sbin/fsfreeze", "-u", at])
        wait_for(lambda at=at: run(["umount", at]).returncode == 0, 30)


def fill(path):
    """Writes until there is no room left."""
    with open(path, "wb", buffering=0) as f:
        for size in (1 << 16, 4096, 1):
            try:
                while True:
                    f.write(bytes(size))
            except OSError:
                pass


def test_a_full_store_is_survived(disk, fresh, box):
    """Shells and attaches go on, the log says it, and what ended meanwhile is
    in the store when there is room again.
    """
    state = disk("tmpfs", "16m")
    srv = fresh(start=False, recording__enabled="no")
    srv.state.parent.mkdir(exist_ok=True)
    srv.options["server.state_dir"] = srv.state = state
    srv.write_conf()
    srv.start()
    term = srv.term(box).ready()
    other = srv.term(f"{box}+other").ready()
    fill(state / "filler")
    other.send("exit 6\r")
    assert other.wait() == 6
    term.ready()
    more = srv.term(box).ready()
    wait_for(lambda: "store_stuck" in srv.log(), 60)
    got = srv.ssh(f"{box}x", "true", timeout=30)
    assert got.returncode == 255 and b"store" in got.stderr
    (state / "filler").unlink()
    assert srv.row(box, "other")["exit_code"] == 6
    wait_for(lambda: len(srv.json("who")) == 2)
    assert srv.out(f"{box}y", "echo fine") == "fine\n"
    more.send("exit 7\r")
    assert more.wait() == 7 and term.wait() == 7


# ---- recordings -----------------------------------------------------------------


def recorded(srv, where):
    """A server whose recordings lie on a disk of their own."""
    srv.options["recording.dir"] = where
    srv.options["recording.min_free"] = "0"
    srv.write_conf()
    srv.start()
    return srv


def test_d7_a_full_disk_is_marked_and_survived(disk, fresh, box):
    """The session goes on, the file keeps whole lines and says what is
    missing, others are unharmed, and a new session records again.
    """
    where = disk("tmpfs", "2m")
    srv = recorded(fresh(start=False), where)
    term = srv.term(box).ready()
    term.send("yes 0123456789 | head -c 8M; echo; echo do''ne\r")
    term.expect(rb"\ndone\r?\n", deadline=90)
    wait_for(lambda: "recording_trouble" in srv.log())
    term.send("exit 5\r")
    assert term.wait() == 5
    row = srv.recording(box, deadline=20)
    row = wait_for(lambda: next((r for r in srv.sql(
        "SELECT * FROM recording") if r["state"] != "open"), None))
    data = pathlib.Path(row["path"]).read_bytes()
    parse(data)
    assert row["gaps"] >= 1 or row["state"] == "truncated"
    pathlib.Path(row["path"]).unlink()
    again = srv.term(f"{box}+again").ready()
    again.send("exit\r")
    again.wait()
    row = wait_for(lambda: next((r for r in srv.sql(
        "SELECT * FROM recording WHERE name = 'again'")
        if r["state"] == "complete"), None))
    assert "ready_42" in plain(parse(pathlib.Path(row["path"]).read_bytes())[1])


def test_a_stopped_disk_holds_nobody_for_long(disk, fresh, box):
    """Frozen under the recorder: five seconds at most, then output goes on;
    typing, attaching and other sessions are not delayed; thawed, the gap is
    marked and what comes then is recorded.
    """
    where = disk("ext4", 32 << 20)
    srv = recorded(fresh(start=False), where)
    term = srv.term(box).ready()
    quiet = srv.term(f"{box}+quiet").ready()
    assert run(["/usr/sbin/fsfreeze", "-f", where]).returncode == 0
    term.send("yes 0123456789 | head -c 4M; echo; echo do''ne\r")
    time.sleep(1)
    quiet.ready()
    start = time.monotonic()
    term.expect(rb"\ndone\r?\n", deadline=60)
    joined = srv.term(box).ready()
    assert time.monotonic() - start < 40
    assert run(["/usr/sbin/fsfreeze", "-u", where]).returncode == 0
    # the recorder's thread hung in the kernel until now
    wait_for(lambda: srv.berth("rec", "cat", f"{box}+default").returncode == 0)
    time.sleep(1)
    joined.send("echo aft''er\r")
    joined.expect(rb"after\r?\n")
    joined.send("exit 8\r")
    assert joined.wait() == 8 and term.wait() == 8
    row = wait_for(lambda: next((r for r in srv.sql(
        "SELECT * FROM recording WHERE name = 'default'")
        if r["state"] != "open"), None))
    events = parse(pathlib.Path(row["path"]).read_bytes())[1]
    assert row["gaps"] >= 1 and "after" in plain(events)
    times = [e[0] for e in events]
    assert times == sorted(times)


def test_sigterm_with_keep_flushes_recordings(fresh, box):
    """What was printed before is in the file when berthd has gone, though
    recording.flush would have waited.
    """
    srv = fresh(recording__flush="60s", session__on_shutdown="keep")
    term = srv.term(box).ready()
    term.send("echo pre''cious\r")
    term.expect(rb"precious\r?\n")
    path = pathlib.Path(srv.recording(box)["path"])
    assert srv.stop() == 0
    assert "precious" in plain(parse(path.read_bytes())[1])
    srv.start()
    row = srv.sessions(box)[0]
    assert row["status"] == "running"
    srv.berth_ok("kill", row["id"])
    srv.row(box)
