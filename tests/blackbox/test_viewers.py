"""Several people at one session: whose size it has and what those see who have
another, who may only watch, what a stopped or slow one means for the rest.
Judged by what terminals show (tests/terminal). Numbers are the field cases'.
"""

import json
import re
import signal
import socket
import time

import pytest

import procs
from berth import end, free_port, wait_for
from test_attach import put, same_soon, start

SERVER = {"session__detach_key": "ctrl-]"}

# Draws its size whenever that changes, and says what it was typed.
APP = r'''
import fcntl, os, select, signal, struct, termios, tty
tty.setraw(0)
out, got, hints = os.dup(1), b"", 0
pipe = os.pipe()
os.set_blocking(pipe[1], False)
signal.set_wakeup_fd(pipe[1])
signal.signal(signal.SIGWINCH, lambda *_: None)
signal.signal(signal.SIGINT, lambda *_: os._exit(9))

def draw():
    rows, cols = struct.unpack("HHHH", fcntl.ioctl(1, termios.TIOCGWINSZ,
                                                   bytes(8)))[:2]
    text = "\x1b[?1049h\x1b[2J\x1b[Hsize %d %d\x1b[2Hwinch %d\x1b[3Hgot %s" % (
        rows, cols, hints, got.hex())
    text += "\x1b[%d;%dHZ\x1b[2;1H" % (rows, cols)
    os.write(out, text.encode())

draw()
while True:
    for fd in select.select([0, pipe[0]], [], [])[0]:
        data = os.read(fd, 4096)
        if fd:
            hints += 1
        else:
            got += data
        draw()
'''


def app(srv, box):
    put(srv, box, "app.py", APP)
    start(srv, box, "exec /usr/bin/python3 app.py")


def size_is(srv, box, cols, rows):
    wait_for(lambda: (lambda s: (s["cols"], s["rows"]))(srv.session(box)) ==
             (cols, rows), 20, f"{cols}x{rows}")


def shows(term, cols, rows):
    """Waits until TERM shows the application at that size, as far as it can,
    with a margin or clipped; or exactly, if it has that size.
    """
    own = (term.vt.cols, term.vt.rows)

    def look(vt):
        lines = vt.lines()
        return (lines[0].startswith(f"size {rows} {cols}") and
                ((cols, rows) > own or lines[rows - 1][cols - 1:cols] == "Z"))

    if rows <= own[1] and cols <= own[0]:
        term.wait_until(look, 20, f"the application at {cols}x{rows}")
    else:
        term.wait_for(f"size {rows} {cols}")
    term.wait_quiet()
    if rows < own[1] and cols <= own[0]:
        assert f"session is {cols}x{rows}" in term.text()
        rest = [line.replace(f"session is {cols}x{rows}", "").strip()
                for line in term.lines()[rows:]]
        assert not any(rest)
    if (cols, rows) == own:
        assert "session is" not in term.text()


# ---- A11: size ---------------------------------------------------------------


def test_a11_the_size_is_that_of_who_typed_or_resized_last(srv, box):
    """Coming alone changes nothing; leaving does, also by kill -9. Everybody
    sees a whole picture all the time.
    """
    app(srv, box)
    a = srv.terminal(box, cols=120, rows=40)
    shows(a, 120, 40)
    b = srv.terminal(box, cols=80, rows=24)
    b.wait_for("size 40 120")
    shows(a, 120, 40)
    time.sleep(1.1)  # whoever typed last holds the size for a second
    b.type("b")
    for term in (a, b):
        shows(term, 80, 24)
    b.resize(100, 30)
    for term in (a, b):
        shows(term, 100, 30)
    again = srv.terminal(box, cols=100, rows=30)
    shows(again, 100, 30)
    same_soon(b, again)
    again.kill()
    b.kill()
    shows(a, 120, 40)
    assert json.loads(srv.berth_ok("who", "--json")) is not None


def test_a11_two_who_type_do_not_make_it_flap(srv, box):
    """Fifty keys of two people in turn: not fifty sizes."""
    app(srv, box)
    a = srv.terminal(box, cols=90, rows=30)
    shows(a, 90, 30)
    b = srv.terminal(box, cols=80, rows=24)
    b.wait_for("size 30 90")
    for _ in range(25):
        a.type("a")
        b.type("b")
        time.sleep(0.02)
    a.wait_until(lambda vt: len(set_of(vt)) >= 100, 20, "50 keys")
    winches = int(re.search(r"winch (\d+)", a.text())[1])
    assert winches <= 6, winches


def set_of(vt):
    """The hexadecimal digits of what was typed, over the lines it fills."""
    text = "".join(vt.text().split("got ")[-1].split())
    return re.match(r"[0-9a-f]*", text)[0]


POLICIES = {
    # policy: with both there, after the smaller one was killed
    "smallest": ((80, 24), (120, 40)),
    "largest": ((120, 40), (120, 40)),
    "first": ((120, 40), (120, 40)),
    "fixed 101x33": ((101, 33), (101, 33)),
    "latest": ((120, 40), (120, 40)),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_a11_policies(fresh, box, policy):
    """Also after an unclean end; one who only watches never counts."""
    srv = fresh(session__resize=policy)
    both, one = POLICIES[policy]
    watching = srv.add_key("w", 'role="viewer"')
    app(srv, box)
    a = srv.terminal(box, cols=120, rows=40)
    a.wait_for("size")
    w = srv.terminal(box, key=watching, cols=10, rows=5)
    w.wait_for("size")
    b = srv.terminal(box, cols=80, rows=24)
    b.wait_for("size")
    size_is(srv, box, *both)
    shows(a, *both)
    w.resize(200, 60)
    b.kill()
    wait_for(lambda: len(srv.json("who")) == 2, 20, "b's end")
    size_is(srv, box, *one)
    shows(a, *one)
    if policy == "first":
        c = srv.terminal(box, cols=90, rows=20)
        c.wait_for("size 40 120")
        a.kill()
        shows(c, 90, 20)


# ---- A12: who only watches ---------------------------------------------------


def test_a12_nothing_of_a_watcher_gets_through(srv, box):
    """No byte, no signal, no size, no second way in; the detach key works."""
    key = srv.add_key(f"w{box}", 'role="viewer"')
    app(srv, box)
    a = srv.terminal(box)
    shows(a, 80, 24)
    before = a.lines()[1]
    w = srv.terminal(box, key=key, cols=20, rows=5, delay=0.1)
    w.wait_for("size 24 80")
    for text in ("id\r", "\x03", "\x1c", "\x1a", "\x04",
                 "\x1b[200~rm -rf\r\x1b[201~", "\x1b[?64;1c", "\x1b[1;1R"):
        w.type(text)
    w.type("x" * 300000)
    w.resize(2, 2)
    w.resize(200, 60)
    raw = json.loads(srv.berth_ok("who", "--json"))
    assert {r["role"] for r in raw if r["sandbox"] == box} == {
        "owner", "viewer"}
    # it is refused elsewhere too
    assert srv.ssh(box, "touch made", key=key).returncode != 0
    assert srv.ssh(box, None, ["-s", "-T"], key=key).returncode != 0
    port = free_port()
    tunnel = srv.spawn(box, None, ["-N", "-L", f"127.0.0.1:{port}:127.0.0.1:"
                                   f"{srv.port}"], key=key)
    wait_for(lambda: is_listening(port) or tunnel.poll() is not None, 20)
    assert not says_ssh(port)
    end(tunnel)
    a.type("!")
    a.wait_for("got 21")
    a.wait_quiet(0.5)
    assert a.lines()[1:3] == [before, "got 21"]
    size_is(srv, box, 80, 24)
    assert srv.ssh(box, "ls made").returncode != 0
    w.type("\x1d")
    assert w.wait() == 0
    row = srv.sql("SELECT role, bytes_in FROM attachment WHERE identity ="
                  f" 'w{box}' ORDER BY id LIMIT 1")
    assert row[0]["role"] == "viewer"


def is_listening(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def says_ssh(port):
    """True when a forwarded port reaches what listens there."""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as s:
            s.settimeout(5)
            return s.recv(4) == b"SSH-"
    except OSError:
        return False


def test_a12_a_watcher_starts_no_session(srv, box):
    """And hears why."""
    key = srv.add_key(f"w{box}", 'role="viewer"')
    done = srv.ssh(box, None, ["-tt"], key=key)
    assert done.returncode == 255 and not srv.sessions(box, True)
