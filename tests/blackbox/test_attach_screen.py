"""What is shown to somebody who attaches: no half characters or sequences, the
screen of applications at once, the history and live output without a gap, and
nothing that would ring or write again. Numbers are the field cases'.
"""

import random
import re
import shlex
import time

import pytest

from berth import wait_for
from grid import PLAIN, RGB
from terminal import Terminal
from test_attach import SIZES, detach, put, same_soon, start

SERVER = {"session__detach_key": "ctrl-]"}


# ---- A7: nothing begins in the middle ----------------------------------------


FLOOD = r'''
import os, sys, time
LINE = "\x1b[38;2;255;100;0mあ🙂\x1b[0m\r\n".encode()
LONG = (b"\x1b]8;;http://x/" + b"y" * 200000 + b"\x1b\\",
        b"\x1bPq" + b"8;2;255" * 30000 + b"\x1b\\",
        b"\x1b]52;c;" + b"QUJD" * 50000 + b"\x07", b"")[int(sys.argv[1])]
data = LINE * 1500 + LONG + LINE * 100
while True:
    while data and data is not None:
        n = os.write(1, data[:4096 + 13])
        data = data[n:]
        time.sleep(0.002)
    data = LINE * 1500 + LONG + LINE * 100
'''


def is_clean(vt):
    """Only whole lines stand there; the last one may be under way."""
    lines = [line for line in vt.all_lines() if line][:-1]
    strange = {line for line in lines
               if line != "あ🙂" and not re.fullmatch(
                   r"\[berth: .*\]|session is .*", line)}
    assert not strange, sorted(strange)[:5]
    orange = RGB | 0xff6400
    for row in vt.buffer.rows[:vt.row]:
        if row.text() == "あ🙂":
            assert {row.pen[0].fg, row.pen[2].fg} == {orange}
    return len(lines)


@pytest.mark.parametrize("kind", range(4), ids=("link", "sixel", "clipboard",
                                                "plain"))
def test_a7_no_half_character_or_sequence(srv, box, kind):
    """Attached at random moments, also just behind a string of 200 kB that a
    ring may hold a part of."""
    rnd = random.Random(kind)
    put(srv, box, "flood.py", FLOOD)
    start(srv, box, f"stty raw; exec /usr/bin/python3 flood.py {kind}")
    wait_for(lambda: srv.session(box)["bytes_out"] > 100000, 30, "output")
    for i in range(6):
        cols, rows = SIZES[i % 3]
        term = srv.terminal(box, cols=cols, rows=rows)
        term.wait_for("あ🙂")
        time.sleep(rnd.uniform(0, 0.4))  # which moment it is must not matter
        term.kill()
        term.proc.wait(10)
        with term.lock:
            assert is_clean(term.vt) >= 1
        term.close()
    srv.berth_ok("kill", f"{box}+default", "-KILL")


# ---- A8: applications --------------------------------------------------------


CURSES = r'''
import curses, time

def main(win):
    curses.curs_set(0)
    curses.start_color()
    for i in range(1, 8):
        curses.init_pair(i, i, 7 - i)
    for y in range(curses.LINES):
        win.insstr(y, 0, f"row {y} " * 20, curses.color_pair(y % 8) | (
            curses.A_BOLD if y % 2 else curses.A_UNDERLINE))
    win.refresh()
    while True:
        if win.getch() == ord("n"):
            win.addstr(3, 3, "changed", curses.A_REVERSE)

curses.wrapper(main)
'''

APPS = {
    "curses": ("exec /usr/bin/python3 app.py", "row 5"),
    "tmux": ("trap 'tmux -L $$ kill-server' EXIT TERM HUP;"
             " tmux -L $$ -f tmux.conf new-session"
             " 'echo in''side; exec sleep 600'", "inside"),
    "top": ("exec top -d 600", "PID"),
}


@pytest.mark.parametrize("app", APPS)
def test_a8_an_application_is_shown_at_once(srv, box, app):
    """Without a key press: what the terminal before showed stands there."""
    command, text = APPS[app]
    put(srv, box, "app.py", CURSES)
    put(srv, box, "tmux.conf",
        "set -g automatic-rename off\nset -g status-right ''\n")
    start(srv, box, f"read x; export TERM=xterm-256color; {command}")
    first = srv.terminal(box)
    wait_for(lambda: srv.session(box)["attached"] == 1)
    first.type("\r")
    first.wait_for(text)
    first.wait_quiet(1)
    second = srv.terminal(box)
    second.wait_for(text, 10)
    same_soon(first, second)
    before = second.lines()
    detach(first)
    detach(second)
    third = srv.terminal(box)
    third.wait_for(text, 10)
    third.wait_quiet()
    assert third.lines() == before
    srv.berth_ok("kill", f"{box}+default", "-TERM")
    wait_for(lambda: not srv.sessions(box), 20, "its end")


def test_a8_an_application_goes_on_where_it_is_shown(srv, box):
    """Live output lands where the painted screen expects it."""
    put(srv, box, "app.py", CURSES)
    start(srv, box, "export TERM=xterm-256color; exec /usr/bin/python3 app.py")
    terms = [srv.terminal(box, cols=c, rows=r) for c, r in SIZES]
    for term in terms:
        term.wait_for("row 12")
    terms[0].type("n")
    for term in terms:
        term.wait_for("changed")
    late = srv.terminal(box)
    late.wait_for("changed")
    same_soon(terms[0], late)


def test_a8_a_prompt_is_not_doubled(srv, box):
    """A plain shell shows what it did: one prompt, and no key was pressed."""
    first = srv.terminal(box).ready()
    first.type("PS1='prompt> '\r")
    first.wait_until(lambda vt: vt.lines()[vt.row].rstrip() == "prompt>")
    before = first.text()
    detach(first)
    for _ in range(3):
        again = srv.terminal(box)
        again.wait_for("prompt>")
        again.wait_quiet()
        assert again.text() == before
        detach(again)


# ---- A10: history, screen, live ----------------------------------------------


def lines_of(term):
    """History and screen but for blank lines: what was there before is one."""
    return [line for line in term.all_lines() if line]


@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_a10_history_screen_and_live_output_follow_each_other(srv, box, size):
    """Each line once, in order, from the first one kept to the newest."""
    start(srv, box, "for ((i = 0; i < 300; i++)); do echo L$i; done; read x;"
          " for ((; i < 900; i++)); do echo L$i; sleep .002; done; cat")
    watch = srv.terminal(box, cols=size[0], rows=size[1])
    watch.wait_for("L299")
    assert lines_of(watch)[:300] == [f"L{i}" for i in range(300)]
    watch.type("\r")
    # who types decides about the size, so these have the session's
    others = [srv.terminal(box, cols=size[0], rows=size[1]) for _ in range(4)]
    for term in (watch, *others):
        term.wait_for("L899", 60)
        assert lines_of(term) == [f"L{i}" for i in range(900)]


def test_a10_long_lines_are_whole_in_the_history(srv, box):
    """A line that was wrapped is one line of the history again."""
    start(srv, box, "for ((i = 0; i < 60; i++)); do"
          " printf \"$i:%0250d:日本語\\n\" $i; done; echo fin; cat")
    want = [f"{i}:{i:0250d}:日本語" for i in range(60)]
    for _ in range(2):
        term = srv.terminal(box)
        term.wait_for("fin")
        assert lines_of(term) == [*want, "fin"]
        detach(term)


def test_a10_what_the_terminal_showed_before_is_kept(srv, box):
    """A person's own screen goes up into the history of the terminal, whole,
    and what was on there changes nothing of the session's.
    """
    start(srv, box, "echo in''side; cat")
    ssh = shlex.join(srv.ssh_args(box, "-tt"))
    before = "seq 1 100; printf '\\033[41mred\\033[?7l'"
    with Terminal(["sh", "-c", f"{before}; exec {ssh}"]) as term:
        term.wait_for("inside")
        numbers = [str(i) for i in range(1, 101)]
        assert lines_of(term) == [*numbers, "red", "inside"]
        assert term.lines()[0] == "inside" and term.vt.modes[7]
        assert all(pen == PLAIN for row in term.vt.buffer.rows
                   for pen in row.pen)


def test_a10_the_way_through_pictures_doubles_and_loses_no_line(srv, box):
    """Whose terminal has another size for a while, over several changes, and
    then the session's again has each line once.
    """
    start(srv, box, "i=0; while read x; do for ((n = 0; n < 60; n++)); do"
          " echo L$((i++)); done; done")
    mover, stays = srv.terminal(box), srv.terminal(box)
    end = 0
    for size in ((80, 24), (70, 18), (90, 30), (75, 20), (80, 24)):
        for step in range(3):  # as a window is dragged
            mover.resize(size[0], size[1] + 2 - step)
        wait_for(lambda s=size: (srv.session(box)["cols"],
                                 srv.session(box)["rows"]) == s, 20)
        mover.type("\r")
        end += 60
        mover.wait_for(f"L{end - 1}", 20)
    for term in (mover, stays, srv.terminal(box)):
        term.wait_for(f"L{end - 1}")
        term.wait_quiet()
        assert lines_of(term) == [f"L{i}" for i in range(end)]


# ---- A18: nothing rings twice ------------------------------------------------


LOUD = (r"\007\033]52;c;aGVsbG8=\007\033]9;note\007"
        r"\033]777;notify;a;b\007\033[5i\033[?5h\033[?5l")


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a18_what_disturbs_is_not_repeated(srv, box, size):
    """Live once; no bell, clipboard, notification, print or flash later."""
    start(srv, box, f"read x; printf '{LOUD}'; echo lo''ud; cat")
    live = srv.terminal(box)
    wait_for(lambda: srv.session(box)["attached"] == 1)
    live.type("\r")
    live.wait_for("loud")
    assert [kind for kind, _ in live.vt.events] == [
        "bell", "clipboard", "notify", "notify", "print", "flash", "flash"]
    detach(live)
    for _ in range(3):
        term = srv.terminal(box, cols=size[0], rows=size[1])
        term.wait_for("loud")
        term.wait_quiet()
        assert term.vt.events == []
        detach(term)
        assert term.vt.events == []
