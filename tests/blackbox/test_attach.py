"""What somebody gets who attaches: the screen as it is and everything that will
matter later, nothing else out of the past. Judged by a terminal that shows it
(tests/terminal), not by bytes. Numbers are the field cases'.
"""

import json
import re

import pytest

import answers
import compare
from berth import Failure, wait_for
from vt import Vt

SERVER = {"session__detach_key": "ctrl-]"}

# The session's size, and others that get pictures of it.
SIZES = ((80, 24), (100, 30), (60, 15))


def detach(term):
    term.press("ctrl-]")
    assert term.wait() == 0


def start(srv, box, script, name="default"):
    srv.berth_ok("new", "-s", box, "-n", name, "--", "bash", "-c", script)


def differences(a, b, ignore=()):
    """What differs between two terminals, neither of which changes now."""
    with a.lock, b.lock:
        return compare.differences(a.vt, b.vt, ignore)


def same_soon(a, b, deadline=20, ignore=()):
    """Waits until B shows what A does and would behave as A does."""
    found = []

    def look():
        found[:] = differences(a, b, ignore)
        return not found

    try:
        wait_for(look, deadline)
    except Failure:
        raise Failure("\n".join(["they differ:", *found])) from None


def put(srv, box, name, text):
    done = srv.ssh(box, f"cat > {name}", input=text.encode())
    assert done.returncode == 0


# ---- A1, A2, A3: queries -----------------------------------------------------

QUERIES = (
    r"\033[c\033[>c\033[=c\033[6n\033[5n\033[>q\033]10;?\007"
    r"\033]11;?\033\\\033]4;1;?\007\033[?2026\$p\033P+q544e\033\\"
    r"\033[?u\033[14t\033[18t\033]52;c;?\007"
)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a1_no_old_query_makes_a_terminal_type(srv, box, size):
    """Neither live nor in a replay, so no terminal ever types an answer."""
    start(srv, box, f"read x; stty -echo -icanon; printf \"{QUERIES}\"; sleep 1;"
          " echo asked; cat -v")
    first = srv.terminal(box)
    wait_for(lambda: srv.session(box)["attached"] == 1)
    first.type("\r")
    first.wait_for("asked")
    first.wait_for("^[[?")  # the session's own answer, which cat shows
    first.wait_quiet()
    before = first.text()
    detach(first)
    others = [srv.terminal(box, cols=size[0], rows=size[1], delay=i * 0.2)
              for i in range(2)]
    for term in others:
        term.wait_for("asked")
        term.wait_quiet(0.5)
    if size == (80, 24):
        assert [t.text() for t in others] == [before] * 2
    for term in (first, *others):
        assert term.vt.queries == [] and term.replies() == []


ASK = r'''
import json, os, select, sys, termios, time, tty
tty.setraw(0)
found = []
for parts, end in json.load(open("queries.json")):
    for part in parts[:-1]:
        os.write(1, part.encode())
        time.sleep(0.01 if len(part) > 1 else 0.1)
    began, got = time.monotonic(), b""
    os.write(1, parts[-1].encode())
    while not got.endswith(end.encode()) and select.select([0], [], [], 3)[0]:
        if not got:
            took = time.monotonic() - began
        got += os.read(0, 4096)
    found.append([got.decode(), took if got else 3])
rest = os.read(0, 4096) if select.select([0], [], [], 0.5)[0] else b""
json.dump([found, rest.decode()], open("answers.tmp", "w"))
os.rename("answers.tmp", "answers")
time.sleep(600)
'''

# What is sent, in pieces; how the answer ends; what it looks like.
ASKED = (
    (["\x1b[c"], "c", r"\x1b\[\?[0-9;]+c"),
    (["\x1b[4;7H\x1b[6n"], "R", r"\x1b\[4;7R"),
    (["\x1b[", "6n"], "R", r"\x1b\[4;7R"),
    (["\x1b", "[6", "n"], "R", r"\x1b\[4;7R"),
    (["\x1b[5n"], "n", r"\x1b\[0n"),
    (["\x1b[>c"], "c", r"\x1b\[>[0-9;]+c"),
    (["\x1b[=c"], "\\", r"\x1bP!\|[0-9A-F]{8}\x1b\\"),
    (["\x1b[>q"], "\\", r"\x1bP>\|.+\x1b\\"),
    (["\x1b[?2026$p"], "y", r"\x1b\[\?2026;2\$y"),
    (["\x1b[?2004h\x1b[?2004$p"], "y", r"\x1b\[\?2004;1\$y"),
    (["\x1b]11;?\x1b\\"], "\\", r"\x1b\]11;rgb:[0-9a-f/]{14}\x1b\\"),
    (["\x1b]11;", "?\x07"], "\x07", r"\x1b\]11;rgb:[0-9a-f/]{14}\x07"),
    (["\x1bP+q544e\x1b\\"], "\\", r"\x1bP1\+r544[eE]=[0-9a-fA-F]+\x1b\\"),
    (["\x1b[?u"], "u", r"\x1b\[\?0u"),
    (["\x1b[>5u\x1b[?u"], "u", r"\x1b\[\?5u"),
    (["\x1b[18t"], "t", r"\x1b\[8;24;80t"),
)


def asked(srv, box):
    """The answers that the program got, once it has all of them."""
    got = wait_for(lambda: srv.ssh(box, "cat answers").stdout, 60, "answers")
    answers, rest = json.loads(got)
    assert rest == "", "something came that was not asked for"
    for (_, _, pattern), (answer, _) in zip(ASKED, answers):
        assert re.fullmatch(pattern, answer, re.S), (pattern, answer)
    return [seconds for _, seconds in answers]


def put_queries(srv, box):
    put(srv, box, "ask.py", ASK)
    put(srv, box, "queries.json", json.dumps([q[:2] for q in ASKED]))


@pytest.mark.parametrize("who", ("nobody", "one was", "one is", "three are"))
def test_a2_a_program_is_answered_at_once_attended_or_not(srv, box, who):
    """One answer to each query, within 0.1 s, from the session itself."""
    put_queries(srv, box)
    start(srv, box, "read -t 600 x; exec /usr/bin/python3 ask.py")
    terms = []
    if who != "nobody":
        n = 3 if who == "three are" else 1
        terms = [srv.terminal(box, delay=(0, 0.05, 0.3)[i]) for i in range(n)]
        wait_for(lambda: srv.session(box)["attached"] == n)
    if who == "one was":
        detach(terms[0])
    srv.berth_ok("send", f"{box}+default", "\n")
    seconds = asked(srv, box)
    # a busy machine may be late with one, not with most
    assert sorted(seconds)[len(seconds) // 2] < 0.1
    for term in terms:
        if who != "one was":
            term.wait_quiet(0.5)
        assert term.vt.queries == [] and term.replies() == []


def test_a3_several_terminals_and_one_answer(srv, box):
    """In the order of the questions, and nothing late into the next prompt."""
    start(srv, box, "read x; stty raw -echo; printf '\\033]11;?\\007\\033[c';"
          " timeout --foreground 2 cat >got; stty sane; echo over; cat")
    terms = [srv.terminal(box, delay=d) for d in (0, 0.05, 0.3)]
    wait_for(lambda: srv.session(box)["attached"] == 3)
    terms[0].type("\r")
    for term in terms:
        term.wait_until(lambda vt: "over" in vt.text(), 30)
    got = srv.ssh(box, "cat got").stdout
    assert re.fullmatch(rb"\x1b\]11;rgb:[0-9a-f/]{14}\x07\x1b\[\?[0-9;]+c",
                        got), got
    for term in terms:
        term.wait_quiet(0.4)
        assert term.lines()[-1] == "" and term.text().endswith("over")
        assert term.replies() == []


# ---- A5: what was set once ---------------------------------------------------

STATE = (
    "\x1b]2;a title\x07\x1b[1;1Hmain screen\x1b[1;31m red\x1b[m\x1b[3;1H\x1b[7m"
    "\x1b[?1049h\x1b[?1000h\x1b[?1002h\x1b[?1006h\x1b[?2004h\x1b[?1004h"
    "\x1b[?25l\x1b[>1u\x1b[>4;2m\x1b[?7l\x1b[4h\x1b=\x1b[?1h\x1b[5;12r\x1b[2 q"
    "\x1b[6;3H\x1b[4:3;58;5;9;31;48;2;1;2;3mstyled 日本\x1b[8;5H\x1b7\x1b(0\x1b[31m"
    "\x1b]8;;http://example/\x1b\\link\x1b]8;;\x1b\\\x1b[3g\x1b[4G\x1bH\x1b[7;9H"
    "\x1b]4;3;#102030\x1b\\\x1b]11;#400000\x1b\\"
)

SET = r'''
import os, sys, tty
tty.setraw(0)
os.write(1, open("state").read().encode())
for _ in range(int(sys.argv[1])):
    os.write(1, b"0123456789abcdef" * 64)
print(end="later" if len(sys.argv) > 2 else "", flush=True)
with open("typed", "wb", buffering=0) as f:
    while True:
        got = os.read(0, 4096)
        f.write(got)
        if got == b"q":
            sys.exit(3)
'''


def set_up(srv, box, kib=0):
    """A program that has set everything once, and a terminal that saw it."""
    put(srv, box, "set.py", SET)
    put(srv, box, "state", STATE)
    start(srv, box, f"read x; exec /usr/bin/python3 set.py {kib}")
    term = srv.terminal(box)
    wait_for(lambda: srv.session(box)["attached"] == 1)
    term.type("\r")
    term.wait_until(lambda vt: vt.modes[1004], 60)
    return term.wait_quiet(1, 60)


def typed(srv, box):
    return srv.ssh(box, "cat typed").stdout


@pytest.mark.parametrize("kib", (0, 1000), ids=("soon", "after 1 MB"))
def test_a5_what_was_set_once_is_there_after_an_attach(fresh, box, kib):
    """Also when the ring has long lost the bytes that set it."""
    srv = fresh(session__buffer="64k", session__detach_key="ctrl-]")
    first = set_up(srv, box, kib)
    expected = Vt()
    expected.feed(STATE.encode() + b"0123456789abcdef" * 64 * kib)
    with first.lock:
        assert compare.differences(expected, first.vt, ["charsets"]) == []
    second = srv.terminal(box)
    second.wait_until(lambda vt: vt.modes[1004], 30)
    same_soon(first, second)
    detach(first)
    third = srv.terminal(box, delay=0.2)
    third.wait_until(lambda vt: vt.modes[1004], 30)
    same_soon(second, third)
    third.paste("a\rb")
    third.press("up")
    third.mouse(2, 3)
    third.focus(True)
    want = b"\x1b[200~a\rb\x1b[201~\x1bOA\x1b[<0;4;3M\x1b[I"
    wait_for(lambda: typed(srv, box) == want, 20, want)


@pytest.mark.parametrize("size", SIZES[1:], ids=str)
def test_a5_input_modes_reach_a_terminal_of_another_size(srv, box, size):
    """Its keys, mouse and pastes are what the program asked for."""
    first = set_up(srv, box)
    other = srv.terminal(box, cols=size[0], rows=size[1])
    other.wait_until(lambda vt: vt.modes[1004] and vt.modes[2004], 30)
    other.wait_for("styled 日本")
    with other.lock, first.lock:
        for mode in (1, 66, 1004, 2004):
            assert other.vt.modes[mode] == first.vt.modes[mode], mode
        assert other.vt.mouse == first.vt.mouse
        assert other.vt.encoding == first.vt.encoding
        assert other.vt.kitty.flags == first.vt.kitty.flags
        assert not other.vt.modes[25]
    other.press("up")
    wait_for(lambda: typed(srv, box) == b"\x1bOA", 20, "the key")


# ---- A6: given back ----------------------------------------------------------


def end_of(srv, box, term, how):
    """Ends it; all but the first are the doing of somebody else."""
    if how == "detach":
        detach(term)
    elif how == "exit":
        srv.berth_ok("send", f"{box}+default", "q")
    elif how == "kill":
        srv.berth_ok("kill", f"{box}+default", "-KILL")
    else:
        for row in srv.json("who"):
            if row["sandbox"] == box:
                srv.berth_ok("kick", str(row["id"]))
    term.wait()


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("how", ("detach", "exit", "kill", "kick"))
def test_a6_the_terminal_is_as_it_was_before(srv, box, how, size):
    """No mode is left on for the person's own shell; keys are keys again."""
    set_up(srv, box)
    term = srv.terminal(box, cols=size[0], rows=size[1])
    term.wait_until(lambda vt: vt.modes[1004], 30)
    term.wait_for("styled")
    end_of(srv, box, term, how)
    with term.lock:
        assert compare.unclean(term.vt, Vt(*size)) == []
        assert "Connection" in term.text() or term.vt.col == 0
    sent = len(term.sent)
    for press in (lambda: term.mouse(1, 1), lambda: term.focus(False)):
        press()
    assert len(term.sent) == sent
    assert answers.key(term.vt, "ctrl-c") == "\x03"


def test_a6_a_channel_without_a_terminal_gets_no_resets(srv, box):
    """What was never a terminal is not given back."""
    done = srv.ssh(box, None, ["-T"], input=b"printf a; exit 3\n")
    assert (done.returncode, done.stdout) == (3, b"a")
    done = srv.ssh(box, "printf '\\033[?1000h'; exit 4")
    assert (done.returncode, done.stdout) == (4, b"\x1b[?1000h")
