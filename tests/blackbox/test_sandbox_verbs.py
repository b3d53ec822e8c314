"""What an administrator does to a sandbox from this host: runs commands in it,
copies files in and out, reads what its sessions printed, watches what it uses.
What is inside is hostile: nothing of it may reach a terminal or a file here
that was not asked for.
"""

import json
import os
import signal
import subprocess
import time

import pytest

from berth import Term, wait_for

SERVER = {
    "access__default_template": "native",
    "session__stop_grace": "1s",
    "template plain__provider": "local",
}


def make(srv, box, template="native"):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    return box


@pytest.fixture(params=["native", "plain"])
def there(srv, box, request):
    """A sandbox of either provider that is there."""
    return make(srv, box, request.param)


def cli(srv, *args, **kw):
    return subprocess.Popen(
        [srv.build / "berth", "-S", srv.socket, *args],
        stdin=kw.pop("stdin", subprocess.PIPE), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **kw)


def term(srv, *args, **kw):
    made = Term([srv.build / "berth", "-S", srv.socket, *args], **kw)
    srv.clients.append(made)
    return made


# ---- exec and run -----------------------------------------------------------


def test_exec_keeps_the_streams_apart_and_the_code(srv, there):
    """Words arrive as they are; no shell here or there reads them again."""
    done = srv.berth("sandbox", "exec", there, "--", "sh", "-c",
                     'cat; echo "err $1" >&2; tty; exit 7', "x", "a  b$HOME",
                     input=b"\x00\xffin\n")
    assert done.returncode == 7
    assert done.stdout == b"\x00\xffin\nnot a tty\n"
    assert done.stderr == b"err a  b$HOME\n"


def test_exec_has_the_directory_and_variables_it_was_given(srv, there):
    done = srv.berth("sandbox", "exec", "-e", "A=b c", "-d", "/tmp", there,
                     "-e", "D=e", "sh", "-c", "echo $A,$D,$PWD")
    assert done.stdout == b"b c,e,/tmp\n", done
    home = srv.berth("sandbox", "exec", there, "sh", "-c",
                     "test $PWD = $HOME && echo $BERTH_SANDBOX")
    assert home.stdout.decode() == f"{there}\n"


@pytest.mark.parametrize("script,code", [
    ("exit 137", 137), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exec_ends_as_its_command_does(srv, there, script, code):
    assert srv.berth("sandbox", "exec", there, "sh", "-c",
                     script).returncode == code


def test_exec_of_what_is_no_program_is_127(srv, there):
    done = srv.berth("sandbox", "exec", there, "--", "no-such-program")
    assert done.returncode == 127 and b"no-such-program" in done.stderr
    assert srv.berth("run", there, "/etc/passwd").returncode == 126


def test_exec_needs_a_sandbox_and_run_makes_one(srv, box):
    done = srv.berth("sandbox", "exec", box, "true")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode() == f"berth: there is no sandbox {box}\n"
    assert box not in {r["name"] for r in srv.json("sandbox", "ls")}
    done = srv.berth("run", box, "--", "sh", "-c", "echo hello; exit 9")
    assert (done.returncode, done.stdout) == (9, b"hello\n")
    assert box in {r["name"] for r in srv.json("sandbox", "ls")}
    assert srv.berth("run", "admin", "true").returncode == 125


def test_exec_passes_signals_on(srv, there):
    """The command may do something about an interrupt, and has the word."""
    for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143),
                      (signal.SIGUSR1, 138)):
        child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                    "echo ready; exec sleep 60")
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(sig)
        assert child.wait(20) == code
    child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                "trap 'echo caught; exit 3' INT; echo ready; "
                "while :; do sleep 0.1; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20)[0] == b"caught\n"
    assert child.returncode == 3


def test_exec_that_is_killed_takes_its_command_along(srv, there):
    child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                "echo ready; sleep 7373; :")
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.communicate()
    wait_for(lambda: not srv.sessions(there))
    assert b"7373" not in srv.berth("sandbox", "exec", there, "sh", "-c",
                                    "ps ax | grep 737[3]").stdout


def test_exec_on_a_terminal_is_one_of_the_right_size(srv, there):
    there_is = term(srv, "sandbox", "exec", there, "sh", "-c",
                    "stty size; read x; stty size; echo got-$x",
                    cols=132, rows=50)
    there_is.expect(r"50 132\r\n")
    there_is.resize(90, 33)
    time.sleep(0.3)  # the size is an event of its own
    there_is.send("word\r")
    there_is.expect(r"33 90\r\ngot-word\r\n")
    assert there_is.wait() == 0


def test_exec_takes_its_terminal_by_option(srv, there):
    """-t makes one without one here; -i does without though one is here."""
    done = srv.berth("sandbox", "exec", "-t", there, "tty",
                     stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stdout.startswith(b"/dev/pts/"), done
    no = term(srv, "sandbox", "exec", "-i", there, "sh", "-c",
              "tty; exit 4")
    no.expect("not a tty")
    assert no.wait() == 4


def test_exec_is_a_row_and_with_a_terminal_recorded(srv, box):
    make(srv, box)
    srv.berth_ok("sandbox", "exec", box, "true")
    row = srv.row(box)
    assert json.loads(row["argv"]) == ["true"] and row["kind"] == "pipe"
    assert srv.sql("SELECT count(*) n FROM recording r JOIN session s ON "
                   f"s.id = r.session_id WHERE s.id = '{row['id']}'"
                   ) == [{"n": 0}]
    t = term(srv, "sandbox", "exec", box, "echo", "seen-it")
    assert t.wait() == 0
    rec = srv.recording(box, "complete")
    assert "seen-it" in srv.berth_ok("rec", "cat", rec["session_id"])


def test_exec_says_how_it_is_used(srv, box):
    for args in ((), (box,), ("-x", box, "true"), (box, "-e"),):
        done = srv.berth("sandbox", "exec", *args)
        assert done.returncode == 2
        assert b"usage: berth sandbox exec" in done.stderr
