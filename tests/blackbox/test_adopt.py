"""Death of berthd and of keepers: what goes on, what is told afterwards.
Sessions are lost only when nobody holds their lock. Numbers are the field
cases'.
"""

import fcntl
import json
import os
import re
import resource
import signal
import socket
import sqlite3
import subprocess
import time

import pytest

import keeper_frames as kf
import procs
from berth import run, wait_for


def keeper_of(srv, session):
    """The pid of the keeper of a session."""
    for p in procs.all_procs():
        if p.comm != "berth-session":
            continue
        try:
            with open(f"/proc/{p.pid}/cmdline", "rb") as f:
                if session["id"].encode() in f.read():
                    return p.pid
        except FileNotFoundError:
            pass  # that one has just ended
    raise AssertionError(f"no keeper of {session['id']}")


def kill_keeper(srv, session):
    os.kill(keeper_of(srv, session), signal.SIGKILL)


def check_cast(path):
    """Every line is whole JSON; returns the events."""
    with open(path, "rb") as f:
        data = f.read()
    assert data.endswith(b"\n")
    lines = [json.loads(line) for line in data.splitlines()]
    assert lines[0]["version"] == 2
    return lines[1:]


# ---- berthd is killed -----------------------------------------------------------


def test_an_end_without_berthd_is_told_truthfully(fresh, box):
    """Shells end while nobody is there: code, signal, time, bytes are right."""
    srv = fresh()
    term = srv.term(box).ready()
    other = srv.term(f"{box}+sig").ready()
    srv.kill()
    term.send("exit 7\r")
    assert term.wait() == 7
    other.send("kill -KILL $$\r")
    other.wait()
    ended = time.time() * 1000
    time.sleep(1.2)
    srv.start()
    row = srv.row(box, "default")
    assert (row["status"], row["exit_code"]) == ("exited", 7)
    assert abs(row["exited_ms"] - ended) < 1000 and row["bytes_out"] > 0
    row = srv.row(box, "sig")
    assert (row["status"], row["exit_signal"]) == ("killed", "KILL")
    rows = srv.sql("SELECT * FROM attachment")
    assert all(abs(r["detached_ms"] - ended) < 1000 for r in rows)
    assert all(r["bytes_out"] > 0 and r["bytes_in"] > 0 for r in rows)
    recordings = srv.sql("SELECT * FROM recording")
    assert [r["state"] for r in recordings] == ["complete"] * 2
    for r in recordings:
        check_cast(r["path"])
    assert os.listdir(srv.runtime / "sessions") == []


def test_who_left_meanwhile_is_closed_and_who_stayed_is_not(fresh, box):
    srv = fresh()
    stay, leave = srv.term(box).ready(), srv.term(box).ready()
    srv.kill()
    leave.kill()
    leave.wait()
    time.sleep(0.5)
    srv.start()
    rows = wait_for(lambda: [r for r in srv.sql(
        "SELECT * FROM attachment ORDER BY id") if r["detached_ms"]])
    assert len(rows) == 1 and rows[0]["bytes_out"] > 0
    assert len(srv.json("who")) == 1
    assert srv.sessions(box)[0]["attached"] == 1
    stay.send("exit\r")
    assert stay.wait() == 0


def test_a_row_that_never_reached_the_disk_is_written_again(fresh, box):
    """Killed while somebody locks the store: the keeper knows who is there."""
    srv = fresh()
    first = srv.term(box).ready()
    lock = sqlite3.connect(srv.state / "berth.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    second = srv.term(box).ready()
    srv.kill()
    lock.execute("ROLLBACK")
    lock.close()
    srv.start()
    rows = wait_for(lambda: len(srv.json("who")) == 2 and srv.json("who"))
    assert [r["identity"] for r in rows] == ["tester"] * 2
    assert all(r["remote_addr"].startswith("127.0.0.1:") for r in rows)
    assert all("OpenSSH" in r["client_version"] for r in rows)
    third = srv.term(box).ready()
    assert len({r["id"] for r in srv.json("who")}) == 3
    for t in (first, second, third):
        t.kill()
    wait_for(lambda: srv.json("who") == [])


def test_an_end_that_never_reached_the_disk_is_told_again(fresh, box):
    """The keeper said EXITED and went; berthd died before it was committed."""
    srv = fresh()
    term = srv.term(box).ready()
    lock = sqlite3.connect(srv.state / "berth.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    term.send("exit 5\r")
    assert term.wait() == 5
    time.sleep(0.3)
    srv.kill()
    lock.execute("ROLLBACK")
    lock.close()
    srv.start()
    row = srv.row(box)
    assert (row["status"], row["exit_code"]) == ("exited", 5)


def test_index_rows_that_a_crash_lost_are_made_again(fresh, box):
    """The keeper told them to nobody: when the recording ends, its file is
    read again.
    """
    srv = fresh()
    term = srv.term(box).ready()
    srv.kill()
    term.send("yes 0123456789 | head -c 4000000; echo; echo do''ne\r")
    term.expect(rb"\ndone\r?\n", deadline=90)
    srv.start()
    term.send("exit\r")
    assert term.wait() == 0
    rec = srv.recording(box, "complete")
    with open(rec["path"], "rb") as f:
        data = f.read()

    def rows():
        got = srv.sql("SELECT t_ms, offset FROM recording_index WHERE"
                      f" recording_id = {rec['id']} ORDER BY offset")
        ends = [0] + [r["offset"] for r in got] + [len(data)]
        gap = max(b - a for a, b in zip(ends, ends[1:]))
        return got if gap <= (1 << 20) + 65536 else None

    for r in wait_for(rows, 30, "a row at least every MiB"):
        event = json.loads(data[r["offset"]:].split(b"\n", 1)[0])
        assert event[1] == "o" and abs(event[0] * 1000 - r["t_ms"]) < 2
    wait_for(lambda: not procs.children(srv.proc.pid))


def test_orphaned_connections_serve_what_is_open_and_no_more(fresh, box):
    """One sentence for a new channel; gone when the last channel closes."""
    srv = fresh()
    path = srv.dir / "mux"
    mux = ["-o", "ControlMaster=auto", "-o", f"ControlPath={path}"]
    term = srv.term(box, *mux).ready()
    srv.kill()
    late = srv.ssh(box, "echo new", opts=mux, timeout=20)
    assert late.returncode != 0 and late.stdout == b""
    term.send("echo al''one\r")
    term.expect(rb"[\r\n]alone\r\n")
    srv.start()
    late = srv.ssh(box, "echo new", opts=mux, timeout=20)
    assert late.returncode != 0 and late.stdout == b""
    term.send("exit 3\r")
    assert term.wait() == 3


def test_a_silent_keeper_is_not_lost(fresh, box):
    """Stopped, not dead: its row stays, an attach fails with a sentence, and
    it goes on when it is woken.
    """
    srv = fresh()
    term = srv.term(box).ready()
    session = srv.sessions(box)[0]
    keeper = keeper_of(srv, session)
    srv.kill()
    os.kill(keeper, signal.SIGSTOP)
    try:
        srv.start()
        assert srv.sessions(box)[0]["status"] == "running"
        late = srv.ssh(box, opts=["-tt"], timeout=20)
        assert late.returncode == 255
        assert b"does not answer" in late.stdout + late.stderr
        kill = srv.berth("send", session["id"], "x")
        assert kill.returncode == 1 and b"does not answer" in kill.stderr
        wait_for(lambda: "keeper_silent" in srv.log(), 15)
    finally:
        os.kill(keeper, signal.SIGCONT)
    wait_for(lambda: "session_adopted" in srv.log())
    again = srv.term(box).ready()
    again.send("exit 4\r")
    assert again.wait() == 4 and term.wait() == 4


def test_a_stop_reaches_a_keeper_that_answers_later(fresh, box):
    srv = fresh()
    srv.term(box).ready()
    session = srv.sessions(box)[0]
    keeper = keeper_of(srv, session)
    srv.kill()
    os.kill(keeper, signal.SIGSTOP)
    try:
        srv.start()
        srv.berth_ok("kill", session["id"])
    finally:
        os.kill(keeper, signal.SIGCONT)
    assert srv.row(box)["status"] == "killed"


def test_creating_without_a_keeper_becomes_failed(fresh, box):
    """berthd died between the row and the keeper."""
    srv = fresh()
    srv.out(box, "true")
    srv.kill()
    with sqlite3.connect(srv.state / "berth.db") as db:
        db.execute(
            "INSERT INTO session (id, sandbox_id, name, kind, argv, cwd,"
            " status, cols, rows, created_ms) SELECT"
            " 'ses-00000000000000aa', id, 'half', 'pty', '[]', '/',"
            " 'creating', 80, 24, 1 FROM sandbox LIMIT 1")
    db.close()
    srv.start()
    row = srv.row(box, "half")
    assert row["status"] == "failed" and row["exit_code"] is None
    term = srv.term(f"{box}+half").ready()
    assert b"[berth:" not in term.text


# ---- a keeper is killed ----------------------------------------------------------


def lost_shell(srv, box):
    """A shell with a child that ignores HUP and TERM, and then no keeper."""
    term = srv.term(box).ready()
    term.send("(trap '' HUP TERM; exec sleep 7171) & echo pid=$!\r")
    child = int(term.expect(rb"pid=(\d+)\r?\n").group(1))
    session = srv.sessions(box)[0]
    # on the disk, so that a recording is there to be looked at
    path = srv.recording(box)["path"]
    wait_for(lambda: b"pid=" in open(path, "rb").read())
    return term, session, child


@pytest.mark.parametrize("while_up", [True, False], ids=["up", "down"])
def test_d5_a_killed_keeper_is_a_lost_session(fresh, box, while_up):
    """The row says lost, the recording ends with a whole line, nobody is left,
    the name is free, and the next login hears of it.
    """
    srv = fresh(session__stop_grace="1s")
    term, session, child = lost_shell(srv, box)
    if not while_up:
        srv.kill()
    kill_keeper(srv, session)
    term.wait()
    if not while_up:
        srv.start()
    row = srv.row(box)
    assert (row["status"], row["exit_code"]) == ("lost", None)
    rec = srv.recording(box, "truncated")
    assert rec["bytes"] == os.stat(rec["path"]).st_size
    assert rec["finished_ms"] >= rec["started_ms"]
    events = check_cast(rec["path"])
    assert abs(events[-1][0] * 1000 - rec["duration_ms"]) < 2
    wait_for(lambda: not procs.is_alive(child), 10)
    wait_for(lambda: not procs.is_alive(session["pid"]), 10)
    fresh_term = srv.term(box).ready()
    assert re.search(rb"\[berth: the former session .* was lost",
                     fresh_term.text)
    assert session["id"].encode() in fresh_term.text
    again = srv.term(box)
    again.ready()
    assert b"was lost" not in again.text.split(b"ready_42")[0][:40]


def test_notice_can_be_off(fresh, box):
    srv = fresh(session__notice="no")
    term, session, child = lost_shell(srv, box)
    kill_keeper(srv, session)
    term.wait()
    srv.row(box)
    assert b"[berth:" not in srv.term(box).ready().text
    wait_for(lambda: not procs.is_alive(child), 15)


def test_d5_a_cut_recording_of_a_killed_keeper_is_mended(fresh, box):
    """Half a line at the end, a character cut in two: what is listed plays."""
    srv = fresh()
    term, session, child = lost_shell(srv, box)
    srv.kill()
    kill_keeper(srv, session)
    term.wait()
    path = next((srv.state / "recordings" / box).glob("*.cast"))
    whole = path.read_bytes()
    whole = whole[: whole.rindex(b"\n") + 1]
    with path.open("ab") as f:
        f.truncate(len(whole))
        f.seek(0, 2)
        f.write('[9999.5, "o", "ä'.encode()[:-1])
    srv.start()
    rec = srv.recording(box, "truncated")
    assert path.read_bytes() == whole and rec["bytes"] == len(whole)
    assert rec["duration_ms"] < 9000000
    assert srv.berth_ok("rec", "cat", session["id"]).encode() == whole
    wait_for(lambda: not procs.is_alive(child), 15)


def test_d6_broken_files_among_the_recordings_hurt_nobody(fresh, box):
    """Open rows whose files are empty, cut in the header, binary, missing, a
    directory, a link: each is closed as truncated, the rest goes on.
    """
    srv = fresh()
    term, session, child = lost_shell(srv, box)
    srv.kill()
    kill_keeper(srv, session)
    term.wait()
    home = srv.state / "recordings" / box
    bad = {
        "01": lambda p: p.write_bytes(b""),
        "02": lambda p: p.write_bytes(b'{"version": 2, "wid'),
        "03": lambda p: p.write_bytes(os.urandom(5000)),
        "04": lambda p: None,
        "05": lambda p: p.mkdir(),
        "06": lambda p: p.symlink_to("/etc/passwd"),
        "07": lambda p: os.mkfifo(p),
        "08": lambda p: p.write_bytes(b"\n\n\n" + b"x" * (1 << 20)),
    }
    with sqlite3.connect(srv.state / "berth.db") as db:
        for n, make in bad.items():
            path = home / f"ses-00000000000000{n}.cast"
            make(path)
            db.execute(
                "INSERT INTO recording (session_id, sandbox, name, path,"
                " format, state, started_ms) VALUES (?, ?, 'x', ?,"
                " 'asciicast-v2', 'open', 1)",
                (path.stem, box, str(path)))
    db.close()
    srv.start()
    wait_for(lambda: {r["state"] for r in srv.sql(
        "SELECT state FROM recording")} == {"truncated"})
    assert open("/etc/passwd", "rb").read(5) == b"root:"
    for n in bad:
        done = srv.berth("rec", "cat", f"ses-00000000000000{n}")
        assert done.returncode in (0, 1), done
        assert done.returncode == 0 or done.stderr.count(b"\n") == 1
    assert srv.berth_ok("rec", "cat", session["id"])
    assert srv.out(box, "echo fine") == "fine\n"
    wait_for(lambda: not procs.is_alive(child), 15)


def test_e14_no_zombie_of_killed_keepers(fresh, box):
    srv = fresh()
    for i in range(5):
        term = srv.term(f"{box}+{i}").ready()
        session = next(s for s in srv.sessions(box) if s["name"] == str(i))
        kill_keeper(srv, session)
        term.wait()
    wait_for(lambda: srv.sessions(box) == [])
    wait_for(lambda: not [p for p in procs.children(srv.proc.pid)
                          if p.state == "Z"])
    assert os.listdir(srv.runtime / "sessions") == []


# ---- other versions, other clocks ---------------------------------------------


class FakeKeeper:
    """Speaks for a keeper of another version, with its row and its lock."""

    def __init__(self, srv, box, version, generation=1):
        self.sid = "ses-00000000000000bb"
        self.version, self.generation = version, generation
        self.link = None
        home = srv.runtime / "sessions"
        self.lock = os.open(home / f"{self.sid}.lock",
                            os.O_CREAT | os.O_RDWR, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.bind(str(home / f"{self.sid}.sock"))
        self.sock.listen()
        self.sock.settimeout(20)
        with sqlite3.connect(srv.state / "berth.db") as db:
            db.execute(
                "INSERT INTO session (id, sandbox_id, name, kind, argv, cwd,"
                " status, cols, rows, created_ms, started_ms, pid) SELECT"
                f" '{self.sid}', id, 'old', 'pty', '[]', '/', 'running', 80,"
                f" 24, 1, 1, {os.getpid()} FROM sandbox WHERE name = '{box}'")
        db.close()

    def accept(self):
        conn, _ = self.sock.accept()
        conn.settimeout(20)
        self.link = kf.Link(conn)
        self.hello()

    def hello(self):
        stats = (5).to_bytes(8, "big") + bytes(8) + bytes([0, 0, 0, 80])
        stats += bytes([0, 0, 0, 24]) + bytes(20)
        self.link.send(kf.HELLO, 0, 0, self.version.to_bytes(4, "big")
                       + kf._str(self.sid) + self.generation.to_bytes(8, "big")
                       + b"\1" + os.getpid().to_bytes(4, "big") + bytes(8)
                       + stats + bytes(4))

    def exit(self, code):
        self.link.send(kf.EXITED, 0, 0, b"\0\0" + code.to_bytes(4, "big")
                       + bytes(4) + (2).to_bytes(8, "big") + bytes(44) + b"\0")

    def close(self):
        if self.link:
            self.link.sock.close()
        self.sock.close()
        os.close(self.lock)


    def write_state(self, pid, started_ms):
        """The lock file of a keeper that runs; sessions/wire/state_file.h."""
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            boot = f.read().strip()
        start = procs.get(pid).start if pid else 0
        data = b"brth" + (1).to_bytes(4, "big") + kf._str(self.sid)
        data += kf._str(boot) + bytes(12) + pid.to_bytes(4, "big")
        data += start.to_bytes(8, "big") + started_ms.to_bytes(8, "big")
        data += b"\0" + bytes(4) + bytes(4)
        total = 2166136261
        for c in data:
            total = (total ^ c) * 16777619 & 0xffffffff
        os.pwrite(self.lock, data + total.to_bytes(4, "big"), 0)


def prepared(fresh, box):
    srv = fresh()
    srv.out(box, "true")
    srv.kill()
    return srv


def test_a_keeper_of_the_version_before_is_served(fresh, box):
    """It knows no TAKE, no label and no notice, and gets none."""
    srv = prepared(fresh, box)
    old = FakeKeeper(srv, box, version=1)
    srv.start()
    old.accept()
    wait_for(lambda: "session_adopted" in srv.log())
    term = srv.term(f"{box}+old")
    data, fds, _, _ = socket.recv_fds(old.link.sock, 4096, 1)
    size = int.from_bytes(data[:4], "big") & ~kf.HAS_FD
    assert data[4] == kf.VIEWER and size == 32 and len(fds) == 1
    old.link.send(kf.VIEWER_ACK, 1, int.from_bytes(data[6:8], "big"),
                  data[8:16])
    with socket.socket(fileno=fds[0]) as viewer:
        link = kf.Link(viewer)
        link.send(kf.DETACH, 0, 0, kf._str("bye"))
        term.expect(b"bye")
    old.link.send(kf.VIEWER_GONE, 0, 0, data[8:16] + bytes(20))
    old.exit(9)
    assert old.link.recv()[0] == kf.BYE
    old.close()
    assert srv.row(box, "old")["exit_code"] == 9


def test_d8_a_clock_that_was_set_back_loses_no_session(fresh, box):
    """The generation is taken from the clock, but it always rises."""
    srv = prepared(fresh, box)
    future = int(time.time() * 1000) + 10**12
    old = FakeKeeper(srv, box, version=2, generation=future)
    srv.start()
    old.accept()
    kind, _, _, payload = old.link.recv()
    assert kind == kf.TAKE and len(payload) == 12
    assert int.from_bytes(payload[:4], "big") == 2
    assert int.from_bytes(payload[4:], "big") > future
    old.hello()
    old.link.send(kf.VIEWERS, 0, 0, bytes(4))
    wait_for(lambda: "session_adopted" in srv.log())
    old.exit(0)
    assert old.link.recv()[0] == kf.BYE
    old.close()


def test_a_keeper_that_talks_nonsense_is_asked_again(fresh, box):
    """Its lock is held, so it is not lost, whatever it says."""
    srv = prepared(fresh, box)
    old = FakeKeeper(srv, box, version=0)
    srv.start()
    old.accept()
    old.version = 2
    old.accept()
    assert old.link.recv()[0] == kf.TAKE
    assert srv.sessions(box)[0]["status"] == "running"
    old.close()
    assert srv.row(box, "old")["status"] == "lost"


@pytest.mark.parametrize("status", ["running", "creating"])
def test_a_keeper_cannot_have_others_killed(fresh, box, status):
    """What was taken over writes a stranger's pid into its lock and goes."""
    srv = prepared(fresh, box)
    innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        old = FakeKeeper(srv, box, version=2)
        with sqlite3.connect(srv.state / "berth.db") as db:
            db.execute("UPDATE session SET status = ? WHERE id = ?",
                       (status, old.sid))
        db.close()
        old.write_state(innocent.pid, 5)
        old.close()
        srv.start()
        row = srv.row(box, "old")
        assert row["status"] == {"running": "lost"}.get(status, "failed")
        time.sleep(1.5)
        assert innocent.poll() is None
        assert "leftover_refused" in srv.log()
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.parametrize("knows", [True, False], ids=["told", "not told"])
def test_a_start_that_nobody_saw_has_its_time(fresh, box, knows):
    """It began between two managers: the time is in its lock, if anywhere."""
    srv = prepared(fresh, box)
    old = FakeKeeper(srv, box, version=2)
    with sqlite3.connect(srv.state / "berth.db") as db:
        db.execute("UPDATE session SET status = 'creating', pid = NULL,"
                   " started_ms = NULL WHERE id = ?", (old.sid,))
    db.close()
    began = int(time.time() * 1000)
    srv.start()
    old.accept()
    assert old.link.recv()[0] == kf.TAKE
    if knows:
        old.write_state(os.getpid(), began + 7)
    old.hello()
    old.link.send(kf.VIEWERS, 0, 0, bytes(4))
    row = wait_for(lambda: [r for r in srv.sql(
        "SELECT * FROM session WHERE name = 'old' AND status = 'running'")])[0]
    if knows:
        assert row["started_ms"] == began + 7
    assert 0 <= row["started_ms"] - began < 60000
    old.exit(0)
    assert old.link.recv()[0] == kf.BYE
    old.close()


def test_a_lock_that_cannot_be_looked_at_is_not_free(fresh, box):
    """The link ends while berthd has no descriptor left: nobody is lost."""
    srv = prepared(fresh, box)
    old = FakeKeeper(srv, box, version=1)
    srv.start()
    old.accept()
    wait_for(lambda: "session_adopted" in srv.log())
    pid = srv.proc.pid
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, limits[1]))
    old.link.sock.close()
    time.sleep(1)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, limits)
    old.accept()
    assert srv.sessions(box)[0]["status"] == "running"
    old.exit(6)
    assert old.link.recv()[0] == kf.BYE
    old.close()
    assert srv.row(box, "old")["exit_code"] == 6


def test_locks_of_long_ended_sessions_are_removed(fresh, box):
    srv = prepared(fresh, box)
    home = srv.runtime / "sessions"
    for name in ("ses-00000000000000cc.lock", "ses-00000000000000cc.sock"):
        (home / name).write_bytes(b"")
    srv.start()
    assert os.listdir(home) == []
