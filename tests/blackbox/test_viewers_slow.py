"""What stopped, slow and resizing clients mean for a session and for the others
at it, and what is seen of a session that stands still. Judged by what terminals
show (tests/terminal). Numbers are the field cases'.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import procs
from berth import IS_ROOT, end, wait_for
from test_attach import detach, same_soon, start
from test_viewers import app, shows

SERVER = {"session__detach_key": "ctrl-]"}


def keeper_of(srv, box):
    return procs.get(srv.session(box)["pid"]).ppid


def numbers(term):
    """Of the lines that were printed live; a history would hold too much."""
    return [int(x) for x in re.findall(rb"(?m)^(?:\x1b\[\?2004l\r)?(\d+)\r$",
                                        term.raw())]


# ---- A13, B16 ----------------------------------------------------------------


@pytest.mark.timeout(240)
def test_a13_no_line_is_lost_while_another_client_stands_still(fresh, box):
    """Whoever reads sees every line; a third attaches at once; who stood still
    is shown the screen as it is then, is told so and is counted.
    """
    srv = fresh(session__buffer="64k")
    a = srv.terminal(box).ready()
    b = srv.terminal(box)
    b.wait_for("ready_42")
    keeper = keeper_of(srv, box)
    before = procs.rss_kib(keeper)
    b.kill(signal.SIGSTOP)
    a.type("seq 1 600000; echo do''ne\r")
    a.wait_for("done", 150)
    assert numbers(a) == list(range(1, 600001))
    began = time.monotonic()
    c = srv.terminal(box)
    c.wait_for("done")
    assert time.monotonic() - began < 10
    assert procs.rss_kib(keeper) - before < 32 * 1024
    b.kill(signal.SIGCONT)
    b.wait_for("done", 30)
    a.type("echo aft''er\r")
    for term in (b, c):
        term.wait_for("after")
    same_soon(a, b)
    same_soon(a, c)
    told = [x for x in b.all_lines() if "bytes skipped]" in x]
    assert len(told) >= 1
    # one client was left behind, as often as it was told
    wait_for(lambda: sorted(r["resyncs"] for r in srv.json("who")) ==
             [0, 0, len(told)], 20, f"{len(told)} resyncs of one client")


def test_a13_a_stopped_client_of_another_size_holds_nobody(srv, box):
    """It gets the picture of the moment when it goes on, nothing older."""
    a = srv.terminal(box).ready()
    b = srv.terminal(box, cols=60, rows=10)
    b.wait_for("ready_42")
    b.kill(signal.SIGSTOP)
    a.type("seq 1 100000; echo do''ne\r")
    a.wait_for("done", 60)
    assert numbers(a) == list(range(1, 100001))
    seen = len(b.raw())
    b.kill(signal.SIGCONT)
    b.wait_for("done")
    b.wait_quiet()
    # what its sockets and ssh held, not megabytes of old pictures
    assert len(b.raw()) - seen < 400000


def test_a13_a_session_without_clients_goes_on(srv, box):
    """Ten megabytes and nobody there; then the last screen is shown."""
    start(srv, box, "read x; seq 1 1500000; echo fi''n; cat")
    a = srv.terminal(box)
    wait_for(lambda: srv.session(box)["attached"] == 1)
    keeper = keeper_of(srv, box)
    detach(a)
    before = procs.rss_kib(keeper)
    srv.berth_ok("send", f"{box}+default", "\n")
    wait_for(lambda: b"fin" in srv.berth("screen", f"{box}+default").stdout,
             80, "the end of the output")
    assert procs.rss_kib(keeper) - before < 48 * 1024
    again = srv.terminal(box)
    again.wait_for("fin")
    found = [int(x) for x in again.all_lines() if x.isdigit()]
    assert found == list(range(found[0], 1500001)) and len(found) > 5000


def test_b16_who_does_not_read_an_exec_slows_nobody(srv, box):
    """`ssh host yes` into a pipe that nobody empties: bounded memory, keys of
    others are echoed at once, and what comes later is not corrupt.
    """
    a = srv.terminal(box).ready()
    quiet = srv.spawn(box, "yes", stdin=subprocess.DEVNULL)
    family = wait_for(lambda: [
        p for p in procs.descendants(srv.proc.pid) if p.comm == "yes"], 20)
    assert family

    def memory():
        return sum(procs.rss_kib(p.pid) for p in
                   procs.descendants(srv.proc.pid)
                   if p.comm.startswith("berth"))

    before = memory()
    took = []
    for i in range(10):
        began = time.monotonic()
        a.type(f"echo {i}''end\r")
        a.wait_for(f"{i}end", 20)
        took.append(time.monotonic() - began)
    assert sorted(took)[5] < 1
    time.sleep(2)  # a leak would need a moment to show
    assert memory() - before < 16 * 1024
    data = b""
    while len(data) < 3000000:
        data += quiet.stdout.read(65536)
    assert data.rstrip(b"y").replace(b"y\n", b"") == b""
    end(quiet)


# ---- A19 ---------------------------------------------------------------------


def test_a19_a_storm_of_sizes(srv, box):
    """2000 changes in 2 s while output runs: the last one counts, everybody
    sees it, nothing spins afterwards and the recording stays small.
    """
    app(srv, box)
    other = srv.terminal(box, cols=60, rows=20)
    other.wait_for("size")
    storm = srv.terminal(box, cols=80, rows=24)
    storm.wait_for("size")
    began = time.monotonic()
    for i in range(2000):
        procs.set_size(storm.master, 60 + i % 50, 20 + i % 30)
        time.sleep(max(0, began + i / 1000 - time.monotonic()))
    storm.resize(101, 37)
    other.wait_for("size 37 101", 30)
    late = srv.terminal(box, cols=101, rows=37)
    shows(late, 101, 37)
    narrow = srv.terminal(box, cols=50, rows=12)
    narrow.wait_for("size 37 101")
    keeper = keeper_of(srv, box)
    wait_for(lambda: is_idle(keeper), 20, "an idle keeper")
    path = pathlib.Path(srv.recording(box)["path"])
    sizes = wait_for(lambda: recorded_sizes(path), 20, "the recorded size")
    # one in 40 ms, and one where somebody came
    assert len(sizes) < (sizes[-1][0] - sizes[0][0]) / 0.04 + 6
    same_soon(late, srv.terminal(box, cols=101, rows=37))


def recorded_sizes(path):
    """All of them, once the last one is there."""
    events = [json.loads(line) for line in path.read_text().splitlines()[1:]
              if line.endswith("]")]
    sizes = [e for e in events if e[1] == "r"]
    return sizes if sizes and sizes[-1][2] == "101x37" else None


def is_idle(pid):
    before = procs.get(pid).cpu_s
    time.sleep(1)
    return procs.get(pid).cpu_s - before < 0.1


# ---- F10 ---------------------------------------------------------------------


@pytest.mark.skipif(not IS_ROOT, reason="explained: stops another user's"
                    " processes")
def test_f10_a_frozen_session_is_shown_and_goes_on(srv, box):
    """Attach shows the last screen, keys wait, a kill works."""
    start(srv, box, "i=0; while :; do echo tick $((i++)); sleep .1; done")
    a = srv.terminal(box)
    a.wait_for("tick 5")
    sid = srv.session(box)["pid"]
    for p in procs.in_session(sid):
        os.kill(p.pid, signal.SIGSTOP)
    a.wait_quiet(0.5)
    last = [x for x in a.all_lines() if x.startswith("tick")]
    b = srv.terminal(box)
    b.wait_for(last[-1], 10)
    b.type("x")
    assert srv.out(box, "echo still here") == "still here\n"
    for p in procs.in_session(sid):
        os.kill(p.pid, signal.SIGCONT)
    more = f"tick {int(last[-1].split()[1]) + 5}"
    for term in (a, b):
        term.wait_for(more)
    for p in procs.in_session(sid):
        os.kill(p.pid, signal.SIGSTOP)
    srv.berth_ok("kill", f"{box}+default")
    assert a.wait() == 255 and b.wait() == 255
    wait_for(lambda: not srv.sessions(box), 20, "its end")
    assert not procs.in_session(sid)
