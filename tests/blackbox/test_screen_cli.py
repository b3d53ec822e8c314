"""What stands around a screen: berth screen, kick and resize, who with sizes,
notices, and what a client may not bring into a session.
"""

import json
import os
import re
import subprocess

import paramiko
import pytest

import raw
from berth import BUILD, Term, end, make_key, wait_for

ESCAPES = re.compile(rb"[\x00-\x09\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")


def attach(srv, *args, **kw):
    term = Term([str(BUILD / "berth"), "-S", str(srv.socket), "attach",
                 *args], **kw)
    srv.clients.append(term)
    return term


def who(srv, box):
    return [r for r in srv.json("who") if r["sandbox"] == box]


def screen(srv, *args):
    """The verb's stdout."""
    done = srv.berth("screen", *args)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- screen ---------------------------------------------------------------


def test_screen_is_what_one_would_see(srv, box):
    """A program that draws: the picture, not the bytes that made it."""
    srv.berth_ok("new", "-s", box, "--", "sh", "-c",
                 r"printf 'first\r\n\033[5;3H\033[31mred\033[m\033[1;1HF';"
                 " exec sleep 600")
    ref = f"{box}+default"
    wait_for(lambda: b"red" in screen(srv, ref), 20, "the picture")
    assert screen(srv, ref) == b"First\n\n\n\n  red\n"
    plain = screen(srv, ref, "--ansi")
    assert b"\x1b[" in plain and b"31m" in plain and b"red" in plain
    row = json.loads(screen(srv, ref, "--json"))
    assert row["id"] == srv.session(box)["id"]
    assert (row["cols"], row["rows"]) == (80, 24)
    assert row["lines"] == ["First", "", "", "", "  red"]
    assert set(row) == {"id", "cols", "rows", "lines"}


def test_screen_with_a_long_history(srv, box):
    """More text than a line of the control socket holds."""
    srv.berth_ok("new", "-s", box, "--", "sh", "-c",
                 "i=0; while [ $i -lt 5000 ]; do i=$((i+1));"
                 " printf 'line %d of a history that is long\\n' $i; done;"
                 " exec sleep 600")
    ref = f"{box}+default"
    wait_for(lambda: b"line 5000 " in screen(srv, ref), 60, "the last line")
    text = screen(srv, ref, "--history")
    numbers = [int(n) for n in re.findall(rb"^line (\d+) of", text, re.M)]
    assert numbers == list(range(1, 5001)) and len(text) > 64 << 10
    assert screen(srv, ref).count(b"\n") <= 24
    assert json.loads(screen(srv, ref, "--history", "--json"))["lines"][0] == (
        "line 1 of a history that is long")


def test_screen_of_what_has_none(srv, box):
    """Pipes are no terminal; what is not there is not found."""
    srv.berth_ok("new", "-s", box, "--no-pty", "--", "sleep", "600")
    srv.session(box)
    done = srv.berth("screen", f"{box}+default")
    assert done.returncode == 4 and b"no terminal" in done.stderr
    assert srv.berth("screen", f"{box}+x").returncode == 3
    assert srv.berth("screen").returncode == 2
    assert srv.berth("screen", "--nosuch", box).returncode == 2


# ---- who, kick, resize ----------------------------------------------------


def test_kick_ends_one_attachment(srv, box):
    """By its number in who; the session and the others go on."""
    first = srv.term(box).ready()
    (kept,) = who(srv, box)
    second = srv.term(box)
    second.expect(rb"ready_42")
    (row,) = [r for r in who(srv, box) if r["id"] != kept["id"]]
    srv.berth_ok("kick", str(row["id"]))
    assert second.wait() != 0
    assert b"administrator ended" in second.text
    wait_for(lambda: [r["id"] for r in who(srv, box)] == [kept["id"]], 20)
    first.send("echo still_$((1+1))\r")
    first.expect(rb"still_2")
    done = srv.berth("kick", str(row["id"]))
    assert done.returncode == 3 and done.stderr.count(b"\n") == 1
    wait_for(
        lambda: srv.sql(
            "SELECT * FROM audit WHERE event = 'kick' AND detail ="
            f" 'attachment {row['id']} of tester' AND sandbox = '{box}'"
            f" AND session_id = '{row['session_id']}'"
            " AND identity LIKE 'uid:%'"),
        20, "an audit row",
    )


def test_kick_wants_a_number(srv):
    """2 for what is none, 3 for what nobody has."""
    for wrong in ((), ("x",), ("0",), ("-1",), ("1", "2"), ("1x",)):
        assert srv.berth("kick", *wrong).returncode == 2, wrong
    assert srv.berth("kick", "999999999").returncode == 3


def test_kick_of_a_watcher_and_of_berth_attach(srv, box):
    """Whatever the client is: it hears why."""
    srv.term(box).ready()
    here = attach(srv, "--view", box)
    here.expect(rb"ready_42")
    (row,) = [r for r in who(srv, box) if r["client_version"] == "berth"]
    assert row["role"] == "viewer"
    srv.berth_ok("kick", str(row["id"]))
    assert here.wait() == 125
    assert b"administrator ended" in here.text


def test_who_tells_role_and_size(srv, box):
    """Also of one who only watches, and after an upgrade."""
    key = srv.add_key(f"w{box}", 'role="viewer"')
    srv.term(box, cols=90, rows=30).ready()
    srv.term(box, key=key, cols=70, rows=20).expect(rb"ready_42")

    def sizes():
        return {(r["identity"], r["role"], r["cols"], r["rows"], r["resyncs"])
                for r in who(srv, box)}

    want = {("tester", "owner", 90, 30, 0), (f"w{box}", "viewer", 70, 20, 0)}
    assert sizes() == want
    table = srv.berth_ok("who")
    assert re.search(r" COLS +ROWS +RESYNCS ", table)
    assert re.search(r" viewer +70 +20 +0 ", table)
    srv.berth_ok("upgrade")
    wait_for(lambda: sizes() == want, 20, "the same after an upgrade")


def test_who_follows_a_new_size(srv, box):
    """The size as it is now, not as it was."""
    term = srv.term(box).ready()
    term.resize(101, 41)
    wait_for(lambda: (who(srv, box)[0]["cols"], who(srv, box)[0]["rows"]) ==
             (101, 41), 20, "the new size")


def test_resize_takes_a_size_or_unpin(srv, box):
    """And nothing else; a session without a terminal has no size."""
    srv.berth_ok("new", "-s", box)
    srv.berth_ok("new", "-s", box, "-n", "p", "--no-pty", "--", "sleep", "600")
    ref = f"{box}+default"
    wait_for(lambda: len(srv.sessions(box)) == 2, 20)
    srv.berth_ok("resize", ref, "99x31")
    srv.berth_ok("resize", ref, "--unpin")
    srv.berth_ok("resize", "--unpin", ref)
    for wrong in ((ref,), (ref, "80x24", "--unpin"), ("--unpin",),
                  (ref, "--pin")):
        assert srv.berth("resize", *wrong).returncode == 2, wrong
    assert srv.berth("resize", f"{box}+p", "--unpin").returncode == 4
    assert srv.berth("resize", f"{box}+x", "--unpin").returncode == 3


def test_resize_pins_the_size(srv, box):
    """Whoever types, the size stays until it is given back."""
    term = srv.term(box, cols=80, rows=24).ready()
    srv.berth_ok("resize", f"{box}+default", "99x31")
    term.send("echo a_$((1+1)) $(stty size)\r")
    term.expect(rb"a_2 31 99")
    term.resize(70, 20)
    term.send("echo b_$((1+1)) $(stty size)\r")
    term.expect(rb"b_2 31 99")
    srv.berth_ok("resize", f"{box}+default", "--unpin")
    term.send("echo c_$((1+1)) $(stty size)\r")
    term.expect(rb"c_2 20 70")


def test_a_fixed_size_is_that_of_new_sessions(fresh, box):
    """session.resize = fixed: whatever the client's window is."""
    srv = fresh(session__resize="fixed 120x40")
    term = srv.term(box, cols=80, rows=24)
    term.send("stty size\r")
    term.expect(rb"40 120")


# ---- the key of berth attach --------------------------------------------------


@pytest.mark.parametrize("key", [b"\x1d", b"\x1b[93;5u", b"\x1b[27;5;93~"])
def test_the_key_leaves_however_it_is_spelled(srv, box, key):
    """Programs change what a terminal sends for Ctrl-]."""
    here = attach(srv, box).ready()
    here.send(key)
    assert here.wait() == 0
    view = attach(srv, "--view", box)
    view.expect(rb"ready_42")
    view.send(key)
    assert view.wait() == 0
    assert srv.session(box)["attached"] == 0


def test_what_looks_like_the_key_goes_on(srv, box):
    """Inside a paste, the beginning of it alone, its release."""
    here = attach(srv, box).ready()
    here.send("stty raw -echo; echo g''o; cat -v\r")
    here.expect(rb"go\n")
    here.send(b"\x1b[200~a\x1db\x1b[201~")
    here.expect(rb"\^\[\[200~a\^\]b\^\[\[201~")
    here.send(b"\x1b[")
    here.expect(rb"\^\[\[")
    here.send(b"\x1b[93;5:3u")
    here.expect(rb"\^\[\[93;5:3u")
    here.send(b"\x1b")
    here.expect(rb"\^\[")
    here.send(b"\x1d")
    assert here.wait() == 0


# ---- notices ---------------------------------------------------------------


def test_notices_say_what_one_got(fresh, box):
    """session.notice = yes: new, joined, and with how many."""
    srv = fresh(session__notice="yes")
    first = srv.term(f"{box}+w")
    first.expect(rb"\[berth: new session %s\+w\]" % box.encode())
    first.ready()
    assert first.text.count(b"[berth: ") == 1
    lines = srv.berth_ok("screen", f"{box}+w").splitlines()
    assert lines[0] == f"[berth: new session {box}+w]"
    for n, others in enumerate((b"1 other here", b"2 others here")):
        term = srv.term(f"{box}+w")
        term.expect(rb"\[berth: joined %s\+w, %s\]\r\n" %
                    (box.encode(), others))
        term.send("echo here_$((%d+40))\r" % n)
        term.expect(rb"here_4%d" % n)
        assert term.text.count(b"[berth: joined") == 1
    here = attach(srv, "--view", f"{box}+w")
    here.expect(rb"\[berth: joined %s\+w, 3 others here\]\r\n" % box.encode())
    assert "joined" not in srv.berth_ok("tail", f"{box}+w")
    assert srv.out(box, "echo quiet") == "quiet\n"


def test_by_default_nothing_is_announced(srv, box):
    """Only what was lost is worth a line."""
    srv.term(box).ready()
    again = srv.term(box)
    again.expect(rb"ready_42")
    again.ready()
    assert b"[berth:" not in again.text


# ---- A22: agents and displays ------------------------------------------------


def test_a22_no_agent_and_no_display_come_in(fresh, box):
    """Not with -A, not with -X, not as variables whatever is accepted."""
    srv = fresh(session__env_accept="*")
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", srv.dir / "agent"],
        stdout=subprocess.DEVNULL,
    )
    names = ("SSH_AUTH_SOCK", "SSH_AGENT_PID", "DISPLAY", "XAUTHORITY")
    show = "echo env_$((1+1)) $MARK " + " ".join(
        f"${{{n}-none}}" for n in names)
    try:
        wait_for((srv.dir / "agent").exists)
        env = {"DISPLAY": ":99", "SSH_AUTH_SOCK": str(srv.dir / "agent"),
               "SSH_AGENT_PID": str(agent.pid), "XAUTHORITY": "/tmp/x",
               "MARK": "mark"}
        opts = ["-A", "-X", *(f"-oSendEnv={n}" for n in (*names, "MARK"))]
        for _ in range(2):
            term = srv.term(box, *opts, env=env)
            term.send(show + "\r")
            term.expect(rb"env_2 mark none none none none\r\n")
            term.kill()
            term.wait()
        pid = srv.session(box)["pid"]
        with open(f"/proc/{pid}/environ", "rb") as f:
            shell = f.read().decode().split("\0")
        assert not [v for v in shell if v.split("=")[0] in names]
        assert "MARK=mark" in shell
        done = srv.ssh(box, show, opts, env={**os.environ, **env})
        assert done.stdout == b"env_2 mark none none none none\n"
    finally:
        end(agent)


@pytest.mark.parametrize("name, rest", [
    ("auth-agent-req@openssh.com", ()),
    ("auth-agent-req", ()),
    ("x11-req", (False, "MIT-MAGIC-COOKIE-1", "00" * 16, 0)),
])
def test_a22_requests_for_them_are_refused(srv, box, name, rest):
    """With a failure for who asked, and the connection goes on."""
    t = raw.transport(srv)
    try:
        assert raw.login(t, box, srv.key) == []
        chan = t.open_session()
        chan._event_pending()
        t._send_user_message(
            raw.message(98, chan.remote_chanid, name, True, *rest))
        with pytest.raises(paramiko.SSHException):
            chan._wait_for_event()
        other = t.open_session()
        other.exec_command("echo on")
        assert other.makefile().read() == b"on\n"
        assert other.recv_exit_status() == 0
        with pytest.raises(paramiko.ChannelException):
            t.open_channel("auth-agent@openssh.com")
        with pytest.raises(paramiko.ChannelException):
            t.open_channel("x11", src_addr=("127.0.0.1", 1))
    finally:
        t.close()


# ---- E10: what comes from outside is shown escaped -------------------------------


def test_e10_identities_and_titles_are_harmless(srv, box):
    """In who, ls, info, rec ls, the log and what is stored."""
    key = make_key(srv.dir / f"evil{box}", "evil")
    kind, blob = (srv.dir / f"evil{box}.pub").read_text().split()[:2]
    comment = f"al\x1b[2J\u202e\x9b31m{box}"
    with srv.keys_path.open("a") as f:
        f.write(f"{kind} {blob} {comment}\n")
    term = srv.term(f"{box}", key=key).ready()
    term.send(r"printf '\033]2;a\033]52;c;cHduZWQ=\033\\\007'; echo d''one"
              "\r")
    term.expect(rb"done\r\n")
    (row,) = who(srv, box)
    assert row["identity"] == comment
    ref = f"{box}+default"
    for args in (("who",), ("who", "--json"), ("ls",), ("ls", "--json"),
                 ("info", ref), ("info", "--json", ref), ("rec", "ls"),
                 ("rec", "ls", "--json")):
        out = srv.berth_ok(*args).encode()
        assert not ESCAPES.search(out), args
        assert "\u202e".encode() not in out, args
        assert b"pwned" not in out and b"cHduZWQ" not in out
    assert rf"al\e[2J" in srv.berth_ok("who")
    assert rf"al\e[2J" in srv.berth_ok("info", ref)
    log = srv.log_path.read_bytes()
    assert b"al\\e[2J" in log and not ESCAPES.search(log)
    srv.berth_ok("kick", str(row["id"]))
    term.wait()
    assert not ESCAPES.search(srv.log_path.read_bytes())


def test_e10_a_clients_name_is_harmless(srv, box):
    """The version that it claims, a user name that is none."""
    srv.ssh("no\x1b[2J\nsuch", "true")
    t = paramiko.Transport(raw.connect(srv.port))
    t.banner_timeout = t.auth_timeout = 60
    t.local_version = "SSH-2.0-x\x1b[31mred"
    try:
        t.start_client(timeout=60)
        assert raw.login(t, box, srv.key) == []
        chan = t.open_session()
        chan.get_pty()
        chan.invoke_shell()
        wait_for(lambda: who(srv, box), 20)
        assert "x\\e[31mred" in srv.berth_ok("who")
        assert not ESCAPES.search(srv.berth_ok("who").encode())
    finally:
        t.close()
    assert not ESCAPES.search(srv.log_path.read_bytes())
