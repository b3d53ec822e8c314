"""Everything recorded: files that stock asciinema plays, rows that are true,
times that end. Numbers are the field cases'.
"""

import json
import os
import pathlib
import re
import stat

import pytest

from berth import IS_ROOT, run, wait_for


def parse(data):
    """Header and events; fails on anything that is not whole and valid."""
    assert data.endswith(b"\n") and b"\n\n" not in data
    header, *rest = [json.loads(x) for x in
                     data.decode("utf-8")[:-1].split("\n")]
    assert header["version"] == 2
    times = [e[0] for e in rest]
    assert times == sorted(times), "times go back"
    return header, rest


def plain(events):
    return "".join(e[2] for e in events if e[1] == "o")


def finished(srv, box):
    row = srv.recording(box, "complete")
    path = pathlib.Path(row["path"])
    header, events = parse(path.read_bytes())
    return row, header, events


def record(srv, box, command, deadline=60):
    """Runs one command as a recorded session of its own to its end."""
    srv.berth_ok("new", "-s", box, "--", "bash", "-c", command)
    srv.row(box, deadline=deadline)
    return finished(srv, box)


def asciinema_cat(path):
    """Stock asciinema; it wants a controlling terminal."""
    return run(
        ["script", "-qec", f"asciinema cat '{path}'", "/dev/null"], 60,
        env={**os.environ, "HOME": "/tmp", "LC_ALL": "C.UTF-8",
             "ASCIINEMA_CONFIG_HOME": "/tmp"},
    )


@pytest.mark.ordinary
def test_a_session_is_recorded_as_the_contract_says(srv, box):
    """Place, mode, header, rows."""
    term = srv.term(box, env={"TERM": "xterm-256color"}, cols=91, rows=29)
    term.ready()
    term.send("exit\r")
    term.wait()
    row, header, events = finished(srv, box)
    session = srv.row(box)
    path = srv.state / "recordings" / box / f"{session['id']}.cast"
    assert row["path"] == str(path) and row["session_id"] == session["id"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for folder in (path.parent, path.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert (header["width"], header["height"]) == (91, 29)
    assert header["env"]["TERM"] == "xterm-256color"
    assert header["env"]["SHELL"].startswith("/")
    assert abs(header["timestamp"] - session["started_ms"] / 1000) < 5
    assert f"{box}+default" in header["title"]
    assert "ready_42" in plain(events)
    assert row["bytes"] == path.stat().st_size and row["gaps"] == 0
    assert row["finished_ms"] >= row["started_ms"] > 0
    assert abs(row["duration_ms"] - events[-1][0] * 1000) < 5000


def test_d1_invalid_utf8_does_not_stop_the_recorder(srv, box):
    """Bad bytes from a program; every line stays valid JSON and UTF-8."""
    _, _, events = record(
        srv, box, r"printf 'A\377\376\300\200B\n'; head -c 4096 /dev/urandom"
        r" | tr -d '\033'; printf '\nEND\n'",
    )
    text = plain(events)
    assert re.search(r"A\ufffd+B\r\n.*\r\nEND\r\n", text, re.S)


def test_d1_the_live_client_gets_the_raw_bytes(srv, box):
    """What is repaired in the file is untouched on the wire."""
    done = srv.ssh(box, r"printf 'A\377\376\300\200B'", ["-tt"])
    assert done.stdout == b"A\xff\xfe\xc0\x80B"


def test_d2_characters_are_never_split(srv, box):
    """Boundaries of reads fall anywhere; characters stay whole."""
    line = "あ🙂é"
    _, _, events = record(
        srv, box, r"printf '\343'; sleep .2; printf '\201'; sleep .2;"
        rf" printf '\202\n'; yes {line} | head -n 150000; printf '\342\202'",
    )
    text = plain(events)
    assert text.count(line) == 150000
    assert text.count("あ") == 150001
    assert text.startswith("あ\r\n")
    assert text.count("\ufffd") == 1 and text.endswith("\ufffd")


def test_d3_resizes_are_recorded_in_order(srv, box):
    """The header has the size at the start, `r` comes before its output."""
    term = srv.term(box, cols=80, rows=24).ready()
    for cols, rows in ((132, 50), (132, 50), (40, 10)):
        term.resize(cols, rows)
        want = f"{rows} {cols}"
        wait_for(
            lambda w=want: size_in(term) == w, 20, f"size {want}"
        )
    term.send("exit\r")
    term.wait()
    _, header, events = finished(srv, box)
    assert (header["width"], header["height"]) == (80, 24)
    assert [e[2] for e in events if e[1] == "r"] == ["132x50", "40x10"]
    position = {e[2]: i for i, e in enumerate(events) if e[1] == "r"}
    for size, shown in (("132x50", "=50 132="), ("40x10", "=10 40=")):
        first = next(i for i in range(len(events))
                     if shown in plain(events[: i + 1]))
        assert position[size] < first


def size_in(term):
    term.send("echo =$(stty size)=\r")
    return term.expect(rb"=(\d+ \d+)=").group(1).decode()


def test_d4_no_zero_size_in_a_header(srv, box):
    """Players show black or panic at 0."""
    done = srv.ssh(box, None, ["-tt"], input=b"stty size; exit\n")
    assert b"24 80\r\n" in done.stdout
    _, header, _ = finished(srv, box)
    assert (header["width"], header["height"]) == (80, 24)


@pytest.mark.ordinary
def test_asciinema_plays_a_complete_and_a_live_one(srv, box):
    """The second reader is not ours."""
    term = srv.term(box).ready()
    recording = srv.recording(box)["id"]
    session = srv.session(box)["id"]

    def cat(name):
        path = srv.dir / name
        path.write_bytes(
            srv.berth("rec", "cat", str(recording)).stdout
        )
        return path

    wait_for(lambda: b"ready_42" in cat("live").read_bytes(), 20,
             "the live recording shows what was printed")
    live = asciinema_cat(cat("live"))
    assert live.returncode == 0 and b"ready_42" in live.stdout
    parse(cat("live").read_bytes())
    by_session = srv.berth("rec", "cat", session)
    assert by_session.returncode == 0 and by_session.stdout
    term.send("exit\r")
    term.wait()
    row = srv.recording(box, "complete")
    done = asciinema_cat(cat("done"))
    assert done.returncode == 0 and b"ready_42" in done.stdout
    if IS_ROOT:
        assert asciinema_cat(row["path"]).returncode == 0


def test_a_cut_recording_is_served_whole_lines(srv, box):
    """What is served must end at a line boundary."""
    row, _, _ = record(srv, box, "seq 1 100")
    path = pathlib.Path(row["path"])
    whole = path.read_bytes()
    path.write_bytes(whole[:-5])
    got = srv.berth("rec", "cat", str(row["id"]))
    assert got.returncode == 0
    parse(got.stdout)


def test_index_rows_point_at_event_lines(srv, box):
    """A row at least every 1 MiB; may lag, never wrong."""
    row, _, _ = record(
        srv, box, "yes 0123456789012345678901234567890123456789 |"
        " head -c 5000000",
    )
    data = pathlib.Path(row["path"]).read_bytes()
    query = (
        "SELECT t_ms, offset FROM recording_index WHERE recording_id ="
        f" {row['id']} ORDER BY offset"
    )
    index = wait_for(
        lambda: (lambda r: len(r) >= len(data) // (1 << 20) and r)(
            srv.sql(query)), 20, "index rows",
    )
    ends = [0] + [r["offset"] for r in index] + [len(data)]
    assert max(b - a for a, b in zip(ends, ends[1:])) <= (1 << 20) + 65536
    for r in index:
        assert data[r["offset"] - 1: r["offset"]] == b"\n"
        event = json.loads(data[r["offset"]:].split(b"\n", 1)[0])
        assert abs(event[0] * 1000 - r["t_ms"]) < 2


def test_a_pipe_session_is_recorded_and_exec_is_not(srv, box):
    """recording.exec is off by default."""
    srv.out(box, "echo not_recorded")
    assert srv.sql(
        "SELECT r.id FROM recording r JOIN session s ON s.id = r.session_id"
        f" JOIN sandbox b ON b.id = s.sandbox_id WHERE b.name = '{box}'"
    ) == []
    srv.berth_ok("new", "-s", box, "-n", "p", "--no-pty", "--", "sh", "-c",
                 "echo recorded; echo also >&2")
    srv.row(box, "p")
    _, _, events = finished(srv, box)
    text = plain(events)
    assert "recorded\n" in text and "also\n" in text
    assert "not_recorded" not in text


def test_exec_is_recorded_when_asked(fresh, box):
    """recording.exec = yes."""
    srv = fresh(recording__exec="yes")
    srv.out(box, "echo spoken")
    _, _, events = finished(srv, box)
    assert "spoken\n" in plain(events)


def test_nothing_is_recorded_when_off(fresh, box):
    """recording.enabled = no."""
    srv = fresh(recording__enabled="no")
    term = srv.term(box).ready()
    term.send("exit 3\r")
    assert term.wait() == 3
    srv.row(box)
    assert srv.sql("SELECT id FROM recording") == []
    assert not list(srv.state.glob("recordings/**/*.cast"))


def test_retention_prunes_what_ended_and_never_what_lives(fresh, box):
    """The sweep removes old files, marks their rows, spares live ones."""
    srv = fresh(recording__retention="1s", recording__sweep_interval="1s")
    live = srv.term(f"{box}+live").ready()
    srv.berth_ok("new", "-s", box, "-n", "old", "--", "echo", "gone")
    session = srv.row(box, "old")["id"]
    query = f"SELECT * FROM recording WHERE session_id = '{session}'"
    row = wait_for(
        lambda: next((r for r in srv.sql(query) if r["state"] == "pruned"),
                     None), 30, "pruned",
    )
    assert not pathlib.Path(row["path"]).exists()
    assert srv.berth("rec", "cat", str(row["id"])).returncode in (1, 3)
    live.ready()
    kept = srv.recording(box, "open")
    assert pathlib.Path(kept["path"]).exists()


def nothing_recorded(srv, text):
    """No recording stays open, and none holds that text."""
    wait_for(
        lambda: not srv.sql("SELECT id FROM recording WHERE state = 'open'"),
        20, "no recording stays open",
    )
    for path in srv.state.glob("recordings/**/*.cast"):
        data = path.read_bytes()
        if data:
            assert text not in plain(parse(data)[1])


def test_min_free_is_respected(fresh, box):
    """Below it recording.on_error applies; the session goes on."""
    srv = fresh(recording__min_free="900000G")
    term = srv.term(box).ready()
    wait_for(lambda: "recording_trouble" in srv.log(), 20, "told in the log")
    term.ready()
    term.send("exit 5\r")
    assert term.wait() == 5
    assert srv.row(box)["exit_code"] == 5
    nothing_recorded(srv, "ready_42")
    assert all(r["gaps"] for r in srv.sql("SELECT gaps FROM recording"))


def test_min_free_holds_for_a_short_session_too(fresh, box):
    """One that ends before the first write by time: nothing slips through
    at its close.
    """
    srv = fresh(recording__min_free="900000G", recording__flush="30s")
    srv.berth_ok("new", "-s", box, "--", "echo", "slipped_through")
    srv.row(box)
    nothing_recorded(srv, "slipped_through")


def test_min_free_can_end_the_session(fresh, box):
    """recording.on_error = stop: no recording, no session."""
    srv = fresh(recording__min_free="900000G", recording__on_error="stop")
    srv.berth_ok("new", "-s", box, "--", "bash", "-c",
                 "while :; do echo x; sleep .1; done")
    row = srv.row(box)
    assert row["status"] in ("killed", "failed")


def test_max_bytes_caps_a_recording(fresh, box):
    """recording.max_bytes: the file stops, the session does not."""
    srv = fresh(recording__max_bytes="100k")
    srv.berth_ok("new", "-s", box, "--", "sh", "-c", "seq 1 200000; exit 9")
    assert srv.row(box)["exit_code"] == 9
    row = wait_for(
        lambda: next(iter(srv.sql(
            "SELECT * FROM recording WHERE state <> 'open'")), None),
    )
    data = pathlib.Path(row["path"]).read_bytes()
    assert 0 < len(data) <= 110 * 1024
    parse(data)
