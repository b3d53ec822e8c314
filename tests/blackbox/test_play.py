"""berth rec play: a recording in a terminal, whatever it holds. Judged by what
the terminal shows, was asked and sends. Numbers are the field cases'.
"""

import os
import re
import signal
import time

import pytest

import procs
from berth import wait_for
from terminal import Terminal

# All that a terminal would answer, and modes that would stay on.
HOSTILE = (r"\033[c\033[>c\033[6n\033]11;?\007\033[?1049h\033[?1000h"
           r"\033[?2004h\033[>1u\033]52;c;aGVsbG8=\007\007\033[?25l")


def record(srv, box, script):
    """Runs SCRIPT in a terminal session; the id of what is recorded."""
    sid = srv.berth_ok("new", "-s", box, "--", "bash", "-c", script).strip()
    wait_for(lambda: not srv.sessions(box), 30, "the session's end")
    wait_for(lambda: [r for r in srv.json("rec", "ls") if
                      r["session_id"] == sid and r["state"] == "complete"], 20)
    return sid


@pytest.fixture
def play(srv):
    """play(ID, *OPTIONS) in a terminal whose shell comes back afterwards."""
    def begin(sid, *opts, **kw):
        term = Terminal(["sh", "-c", '"$0" "$@"; echo "code $?"; cat',
                         srv.build / "berth", "-S", srv.socket, "rec", "play",
                         *opts, sid], **kw)
        srv.clients.append(term)
        return term
    return begin


@pytest.mark.parametrize("size", ((80, 24), (100, 30), (40, 10)), ids=str)
def test_d12_nothing_of_a_recording_reaches_the_terminal(srv, box, play, size):
    """No answer is typed, keys that are pressed are the player's, and the
    terminal is as it was, with what was seen last.
    """
    sid = record(
        srv, box, f"stty -echo; printf '{HOSTILE}seen'; sleep 3; printf fin")
    term = play(sid, cols=size[0], rows=size[1])
    term.wait_for("seen")
    term.type("abc\r")
    term.wait_for("code 0")
    term.wait_quiet()
    assert term.replies() == []
    vt = term.vt
    assert vt.buffer is vt.main and vt.mouse == 0 and vt.modes[25]
    assert not vt.modes[2004] and "abc" not in term.text()
    assert "seen" in term.text()
    data = bytes(term.data)
    assert b"\x07" not in data and b"]52;" not in data
    assert not re.search(rb"\[\?(1000|2004)h|\[>1u|\[=[1-9]", data)
    term.type("x\r")  # a terminal for people again
    term.wait_for("x")
    term.close()


def test_a_recording_is_played_in_its_time(srv, box, play):
    """Speed, the longest pause, pausing, leaving."""
    sid = record(srv, box, "echo one; sleep 2; echo two; sleep 2; echo three")
    began = time.monotonic()
    term = play(sid)
    term.wait_for("code 0")
    assert time.monotonic() - began > 3.9
    assert [x for x in term.lines() if x] == ["one", "two", "three", "code 0"]
    term.close()
    for opts in (("-s", "1000"), ("--idle", "0")):
        term = play(sid, *opts)
        term.wait_for("code 0")
        term.close()
    term = play(sid)
    term.wait_for("one")
    term.type(" ")
    time.sleep(3)
    assert "two" not in term.text()
    term.type(" ")
    term.wait_for("two")
    term.type("q")
    term.wait_for("code 0")
    assert "three" not in term.text()
    term.close()


def test_a_recording_of_several_sizes(srv, box, play):
    sid = record(srv, box, "printf before; sleep .3; for i in 1 2 3 4 5; do"
                 " stty size; sleep .2; done")
    term = play(sid, "-s", "1000", cols=60, rows=12)
    term.wait_for("code 0")
    assert "before" in term.text() and "24 80" in term.text()
    term.resize(100, 40)
    term.close()


@pytest.mark.parametrize("sig", (signal.SIGTERM, signal.SIGHUP), ids=str)
def test_d12_a_player_that_is_ended_gives_the_terminal_back(
        srv, box, play, sig):
    sid = record(srv, box, f"printf '{HOSTILE}seen'; sleep 4; echo end")
    term = Terminal([srv.build / "berth", "-S", srv.socket, "rec", "play",
                     sid])
    srv.clients.append(term)
    term.wait_for("seen")
    term.kill(sig)
    assert term.wait() == -sig
    assert term.vt.buffer is term.vt.main and term.vt.modes[25]


@pytest.mark.parametrize(
    "sig", (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT),
    ids=str)
def test_a_player_that_is_ended_dies_of_the_signal(srv, box, play, sig):
    """The shell sees 128 and the signal, in a terminal that is its own again."""
    sid = record(srv, box, f"printf '{HOSTILE}seen'; sleep 4; echo end")
    term = play(sid)
    term.wait_for("seen")
    (player,) = [p for p in procs.descendants(term.proc.pid)
                 if p.comm == "berth"]
    os.kill(player.pid, sig)
    term.wait_for(f"code {128 + sig}")
    assert term.vt.buffer is term.vt.main and term.vt.modes[25]
    assert "seen" in term.text()
    term.type("x\r")
    term.wait_for("x")
    term.close()


def test_play_says_what_is_wrong(srv, box):
    sid = record(srv, box, "echo x")
    done = srv.berth("rec", "play", sid)
    assert done.returncode == 1 and b"not a terminal" in done.stderr
    for opts in (("-s", "0"), ("-s", "x"), ("-i", "-1"), ("--nosuch",)):
        assert srv.berth("rec", "play", *opts, sid).returncode == 2
    assert srv.berth("rec", "play").returncode == 2
    with Terminal([srv.build / "berth", "-S", srv.socket, "rec", "play",
                   "999999"]) as term:
        assert term.wait() == 3
