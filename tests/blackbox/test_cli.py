"""berth, the command line: every verb, its JSON, its exit codes."""

import json
import os
import signal
import subprocess

import pytest

import procs
from berth import BUILD, end, run, wait_for

SESSION = {
    "id", "sandbox", "name", "kind", "status", "exit_code", "exit_signal",
    "reason", "pid", "cols", "rows", "created_ms", "started_ms", "exited_ms",
    "bytes_out", "bytes_in", "attached",
}
WHO = {
    "id", "session_id", "sandbox", "name", "identity", "key_fingerprint",
    "role", "remote_addr", "client_version", "attached_ms",
}
RECORDING = {
    "id", "session_id", "sandbox", "name", "path", "format", "state",
    "bytes", "duration_ms", "started_ms", "finished_ms", "gaps",
}


@pytest.mark.ordinary
def test_new_ls_info_kill_rm(srv, box):
    """The life of a session by hand."""
    srv.berth_ok("new", "-s", box, "-n", "work", "-e", "FOO=bar", "--", "sh",
                 "-c", "echo $FOO; exec sleep 600")
    (row,) = srv.sessions(box)
    assert SESSION <= set(row)
    assert (row["name"], row["kind"], row["status"], row["attached"]) == (
        "work", "pty", "running", 0)
    assert (row["cols"], row["rows"]) == (80, 24)
    assert row["id"].startswith("ses-") and len(row["id"]) == 20
    for ref in (row["id"], row["id"][:16], f"{box}+work"):
        assert row["id"] in srv.berth_ok("info", ref)
    assert row["id"] in srv.berth_ok("ls")
    assert srv.berth("rm", row["id"]).returncode == 4
    assert srv.berth("new", "-s", box, "-n", "work").returncode == 4
    srv.berth_ok("kill", row["id"])
    ended = srv.row(box)
    assert ended["status"] in ("killed", "exited")
    assert srv.sessions(box) == []
    (old,) = srv.sessions(box, True)
    assert old["id"] == row["id"] and old["exited_ms"]
    srv.berth_ok("rm", row["id"])
    assert srv.sessions(box, True) == []
    assert srv.berth("info", row["id"]).returncode == 3


def test_kill_with_a_signal(srv, box):
    """-SIG reaches the process group and nothing else."""
    srv.berth_ok(
        "new", "-s", box, "--", "sh", "-c",
        "trap 'exit 33' USR1; while :; do sleep .1; done",
    )
    srv.session(box)
    for name in ("-USR1",):
        srv.berth_ok("kill", f"{box}+default", name)
    row = srv.row(box)
    assert (row["status"], row["exit_code"]) == ("exited", 33)
    assert srv.berth("kill", f"{box}+default", "-NOSUCH").returncode == 2


def test_stop_is_term_then_kill(srv, box):
    """A stubborn process is gone after session.stop_grace."""
    srv.berth_ok("new", "-s", box, "--", "sh", "-c",
                 "trap '' HUP TERM; while :; do sleep .1; done")
    pid = srv.session(box)["pid"]
    srv.berth_ok("kill", f"{box}+default")
    wait_for(lambda: not procs.in_session(pid), 20, "gone")
    row = srv.row(box)
    assert row["status"] == "killed" and row["exit_signal"] == "KILL"


def test_pipe_session_send_eof_tail(srv, box):
    """Named sessions without a terminal: input, its end, what they said."""
    srv.berth_ok("new", "-s", box, "-n", "p", "--no-pty", "--", "sh", "-c",
                 "echo begin; while read x; do echo got $x; done; exit 6")
    ref = f"{box}+p"
    assert srv.sessions(box)[0]["kind"] == "pipe"
    follow = subprocess.Popen(
        [BUILD / "berth", "-S", srv.socket, "tail", ref, "-f"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )
    try:
        assert follow.stdout.readline() == b"begin\n"
        srv.berth_ok("send", ref, "one\n")
        assert follow.stdout.readline() == b"got one\n"
        srv.berth_ok("send", ref, "two\nthree\n")
        assert follow.stdout.readline() == b"got two\n"
        assert follow.stdout.readline() == b"got three\n"
        assert srv.berth_ok("tail", ref, "-n", "2") == "got two\ngot three\n"
        assert srv.berth_ok("tail", ref).startswith("begin\ngot one\n")
        srv.berth_ok("eof", ref)
        assert follow.stdout.read() == b""
        follow.wait(20)
    finally:
        end(follow)
    row = srv.row(box)
    assert (row["exit_code"], row["status"]) == (6, "exited")


def test_eof_of_a_pty_session_is_refused(srv, box):
    """There is no half-close of a terminal."""
    srv.berth_ok("new", "-s", box, "--", "sleep", "600")
    srv.session(box)
    assert srv.berth("eof", f"{box}+default").returncode != 0


def test_send_and_resize_of_a_pty(srv, box):
    """As if typed; the size is the terminal's."""
    srv.berth_ok("new", "-s", box)
    srv.session(box)
    ref = f"{box}+default"
    srv.berth_ok("resize", ref, "99x31")
    srv.berth_ok("send", ref, "stty size; echo fi''n\n")
    wait_for(lambda: "fin\r\n" in srv.berth_ok("tail", ref), 20, "fin")
    assert "31 99\r\n" in srv.berth_ok("tail", ref)
    wait_for(
        lambda: (srv.sessions(box)[0]["cols"],
                 srv.sessions(box)[0]["rows"]) == (99, 31), 20, "ls says so",
    )
    for wrong in ("99", "0x0", "axb", "99x", "-1x5"):
        assert srv.berth("resize", ref, wrong).returncode == 2


def test_who_and_info_name_the_person(srv, box):
    """Who is attached where, as what, from where, with which key."""
    term = srv.term(box).ready()
    rows = [r for r in srv.json("who") if r["sandbox"] == box]
    (row,) = rows
    assert WHO <= set(row)
    assert (row["identity"], row["role"], row["name"]) == (
        "tester", "owner", "default")
    assert row["key_fingerprint"].startswith("SHA256:")
    assert row["remote_addr"].startswith("127.0.0.1")
    assert "OpenSSH" in row["client_version"]
    assert "tester" in srv.berth_ok("who")
    assert "tester" in srv.berth_ok("info", f"{box}+default")
    term.kill()
    wait_for(
        lambda: not [r for r in srv.json("who") if r["sandbox"] == box], 20,
        "nobody attached",
    )
    stored = srv.sql(
        "SELECT a.* FROM attachment a JOIN session s ON s.id = a.session_id"
        f" JOIN sandbox b ON b.id = s.sandbox_id WHERE b.name = '{box}'"
    )
    assert stored[0]["detached_ms"] >= stored[0]["attached_ms"]
    assert stored[0]["bytes_in"] > 0 and stored[0]["bytes_out"] > 0


def test_rec_ls_and_cat(srv, box):
    """Recordings by recording id and by session id."""
    srv.berth_ok("new", "-s", box, "--", "echo", "heard")
    session = srv.row(box)["id"]
    row = wait_for(
        lambda: next(
            (r for r in srv.json("rec", "ls")
             if r["session_id"] == session and r["state"] == "complete"),
            None),
        20, "listed as complete",
    )
    assert RECORDING <= set(row) and row["sandbox"] == box
    by_id = srv.berth_ok("rec", "cat", str(row["id"]))
    assert by_id == srv.berth_ok("rec", "cat", session)
    assert "heard" in by_id and json.loads(by_id.split("\n")[0])
    assert session in srv.berth_ok("rec", "ls")
    assert srv.berth("rec", "cat", "999999").returncode == 3


@pytest.mark.ordinary
def test_exit_codes(srv, box):
    """2 usage, 3 not found."""
    for args in ((), ("nosuchverb",), ("kill",), ("info",), ("rec",),
                 ("rec", "nosuch"), ("ls", "--nosuch"), ("send", "x")):
        assert srv.berth(*args).returncode == 2, args
    for args in (("info", "ses-0000000000000000"), ("kill", f"{box}+x"),
                 ("rm", f"{box}+x"), ("send", f"{box}+x", "t"),
                 ("eof", f"{box}+x"), ("tail", f"{box}+x"),
                 ("resize", f"{box}+x", "80x24"), ("rec", "cat", f"{box}+x")):
        done = srv.berth(*args)
        assert done.returncode == 3, (args, done.stderr)
        assert done.stderr.count(b"\n") == 1
    for wrong in ("../x", "a b", "x" * 64, "-la", ""):
        assert srv.berth("new", "-s", wrong).returncode in (2, 5)
    done = run([BUILD / "berth", "-S", srv.dir / "nowhere", "ls"])
    assert done.returncode == 1 and b"nowhere" in done.stderr


def test_the_socket_is_found(srv):
    """By -c, by BERTH_SOCKET."""
    env = {**os.environ, "BERTH_SOCKET": str(srv.socket)}
    assert run([BUILD / "berth", "ls", "--json"], env=env).returncode == 0
    assert run([BUILD / "berth", "-c", srv.conf, "ls"]).returncode == 0


def test_json_of_every_list_is_an_array(srv):
    """Scripts parse it, also when empty."""
    for verb in (("ls",), ("ls", "-a"), ("who",), ("rec", "ls")):
        assert isinstance(srv.json(*verb), list)


def test_new_fails_with_a_sentence(srv, box):
    """A program that does not exist is a failure, not a session."""
    done = srv.berth("new", "-s", box, "--", "/no/such/program")
    assert done.returncode == 1
    assert b"/no/such/program" in done.stderr
    assert srv.sessions(box) == []
    assert [r["status"] for r in srv.sessions(box, True)] == ["failed"]


def test_new_with_a_directory(srv, box):
    """-d below the workspace."""
    srv.out(box, "mkdir sub")
    srv.berth_ok("new", "-s", box, "-n", "d", "-d", "sub", "--no-pty", "--",
                 "sh", "-c", "pwd; read x")
    wait_for(
        lambda: srv.berth_ok("tail", f"{box}+d").rstrip().endswith("/sub"),
        20, "pwd",
    )
    assert srv.berth("new", "-s", box, "-n", "e", "-d",
                     "nosuchdir").returncode != 0


def test_ended_names_can_be_used_again(srv, box):
    """At most one runs; the old ones stay listed."""
    for code in (1, 2):
        srv.berth_ok("new", "-s", box, "--", "sh", "-c", f"exit {code}")
        wait_for(lambda: not srv.sessions(box), 20, "ended")
    codes = [r["exit_code"] for r in srv.sessions(box, True)]
    assert sorted(codes) == [1, 2]


# ---- attach -----------------------------------------------------------------------


def attach(srv, *args, **kw):
    from berth import Term

    term = Term([str(BUILD / "berth"), "-S", str(srv.socket), "attach",
                 *args], **kw)
    srv.clients.append(term)
    return term


def test_attach_from_here(srv, box):
    """The same session as over SSH; Ctrl-] leaves; the code comes out."""
    ssh = srv.term(box).ready()
    here = attach(srv, box, cols=88, rows=30)
    here.ready()
    ssh.expect(rb"ready_42")
    here.send("stty size\r")
    here.expect(rb"30 88\r\n")
    here.resize(90, 31)
    wait_for(lambda: (srv.sessions(box)[0]["cols"]) == 90, 20, "resized")
    here.send("\x1d")
    assert here.wait() == 0
    assert srv.session(box)["attached"] == 1
    again = attach(srv, f"{box}+default")
    again.ready()
    again.send("exit 44\r")
    assert again.wait() == 44 and ssh.wait() == 44


def test_attach_exits_as_the_process_did(srv, box):
    """128+n for signals; makes the session when named."""
    term = attach(srv, f"{box}+sig")
    term.ready()
    term.send("kill -KILL $$\r")
    assert term.wait() == 128 + signal.SIGKILL
    none = attach(srv, "ses-0000000000000000")
    assert none.wait() in (3, 125)


def test_attach_view_only_looks(srv, box):
    """--view: what is typed goes nowhere, the size is not ours."""
    term = srv.term(box).ready()
    view = attach(srv, "--view", box, cols=50, rows=10)
    view.expect(rb"ready_42")
    view.send("echo typed_$((1+1))\r")
    term.send("echo size_$((1+1)) $(stty size)\r")
    view.expect(rb"size_2 24 80")
    assert b"typed_2" not in term.text
    view.send("\x1d")
    assert view.wait() == 0


def test_attach_restores_the_terminal(srv, box):
    """A terminal left raw is a dead terminal."""
    term = attach(srv, box)
    term.ready()
    term.kill(signal.SIGTERM)
    term.wait()
    import termios

    flags = termios.tcgetattr(term.master)[3]
    assert flags & termios.ECHO and flags & termios.ICANON


def test_doctor(srv):
    """Says what is there; reaches the running berthd."""
    done = srv.berth("doctor")
    assert done.returncode in (0, 1) and done.stdout.count(b"\n") >= 3
    none = run([BUILD / "berth", "-S", srv.dir / "nowhere", "doctor"])
    assert none.returncode == 1


def test_views_for_people_select(srv, box):
    """Names and ISO times joined in."""
    srv.term(box).ready()
    for view in ("v_sessions", "v_recordings", "v_attachments", "v_activity"):
        rows = wait_for(
            lambda v=view: [r for r in srv.sql(f"SELECT * FROM {v}")
                            if box in map(str, r.values())
                            or f"{box}+default" in map(str, r.values())],
            20, f"{view} shows {box}",
        )
        assert any("T" in str(v) and "Z" in str(v) for v in rows[0].values())
    audit = srv.sql(f"SELECT * FROM audit WHERE sandbox = '{box}'")
    assert audit and {"event", "identity", "remote_addr"} <= set(audit[0])


def test_new_refuses_a_command_of_too_many_words(srv, box):
    """What does not fit must not become a login shell."""
    done = srv.berth("new", "-s", box, "--", "echo", *["x"] * 1100)
    assert done.returncode == 2 and b"words" in done.stderr
    assert srv.sessions(box, True) == []
