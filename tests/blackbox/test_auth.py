"""Who gets in, as whom, and what a refusal tells. Raw peers for what no
client sends. Numbers are the field cases'.
"""

import concurrent.futures
import os
import socket
import subprocess
import time

import paramiko
import pytest

import raw
from berth import end, make_key, run, wait_for


def count(srv, table="session"):
    return srv.sql(f"SELECT count(*) AS n FROM {table}")[0]["n"]


def is_refused(srv, user, key=None):
    t = raw.transport(srv)
    try:
        raw.login(t, user, key or srv.key)
        return False
    except (paramiko.SSHException, EOFError):
        return True
    finally:
        t.close()


# ---- E1, E2, E3 ------------------------------------------------------------


BEFORE_AUTH = {
    "channel_open": [
        raw.message(90, "session", 0, 1 << 20, 32768),
        raw.message(98, 0, "exec", True, "touch {}/pwn"),
    ],
    "exec_without_open": [raw.message(98, 0, "exec", True, "touch {}/pwn")],
    "userauth_success": [
        raw.message(52),
        raw.message(90, "session", 0, 1 << 20, 32768),
        raw.message(98, 0, "exec", True, "touch {}/pwn"),
    ],
    "info_response": [raw.message(61, 1, "x")],
    "global_request": [raw.message(80, "tcpip-forward", True, "", 0)],
    "other_service": [
        raw.message(5, "ssh-userauth"),
        raw.message(50, "box", "ssh-other", "none"),
    ],
    "service_connection": [
        raw.message(5, "ssh-connection"),
        raw.message(90, "session", 0, 1 << 20, 32768),
    ],
}


@pytest.mark.parametrize("story", BEFORE_AUTH)
def test_e1_connection_messages_before_authentication(fresh, box, story):
    """Channels, successes and services before any proof: nothing happens."""
    srv = fresh(server__login_grace="10s")
    t = raw.transport(srv)
    for m in BEFORE_AUTH[story]:
        text = m.asbytes().replace(b"{}", str(srv.public).encode())
        copy = paramiko.Message(text)
        try:
            t._send_message(copy)
        except (OSError, EOFError, paramiko.SSHException):
            break
    wait_for(lambda: not t.is_active(), 45, "the connection ended")
    t.close()
    assert srv.out(box, "echo fine") == "fine\n"
    assert not (srv.public / "pwn").exists()
    assert count(srv) == 1  # the one of the login above


def test_e1_repeated_authentication_after_success(srv, box):
    """RFC 4252 5.3: ignored, or the end; never another identity."""
    other = srv.add_key(f"late{box}")
    t = raw.transport(srv)
    assert raw.login(t, box, srv.key) == []
    try:
        t._send_message(
            raw.message(50, box, "ssh-connection", "publickey", False,
                        "ssh-ed25519", raw.load(other).asbytes())
        )
        channel = t.open_session(timeout=10)
        channel.exec_command("echo still")
        assert channel.makefile().read() in (b"still\n", b"")
    except (paramiko.SSHException, EOFError, OSError):
        pass
    t.close()
    seen = srv.sql(
        f"SELECT identity FROM audit WHERE identity = 'late{box}'"
    )
    assert seen == []


def test_e2_the_proven_key_decides_not_the_offered_one(srv, box):
    """CVE-2024-45337: key A is asked about, key B signs: the person is B."""
    alice = srv.add_key(f"alice{box}", f'sandbox="{box}a*,{box}"')
    bob = srv.add_key(f"bob{box}", f'sandbox="{box}b*,{box}"')
    alice.unlink()  # only alice.pub is left: it can be offered, not proven
    args = srv.ssh_args(box, key=alice)
    at = args.index("-i")
    both = args[: at + 2] + ["-i", str(bob)] + args[at + 2:]
    both[at + 1] = f"{alice}.pub"
    term = run([*both, "-v", "echo", "in"], 60)
    assert term.returncode == 0 and term.stdout == b"in\n"
    assert term.stderr.count(b"Server accepts key") == 2
    assert srv.ssh(f"{box}a1", "true", key=bob).returncode == 255
    done = run([x if x != box else f"{box}a1" for x in both] + ["true"], 60)
    assert done.returncode == 255 and b"Permission denied" in done.stderr
    people = {r["identity"] for r in srv.sql("SELECT identity FROM audit")}
    assert f"bob{box}" in people and f"alice{box}" not in people


def test_e2_the_final_user_name_decides(srv, box):
    """A user name switched between attempts does not carry anything over."""
    key = srv.add_key(f"sw{box}", f'sandbox="{box}"')
    t = raw.transport(srv)
    for _ in range(2):
        with pytest.raises(paramiko.SSHException):
            raw.login(t, f"{box}-other", key)
    assert raw.login(t, box, key) == []
    channel = t.open_session(timeout=30)
    channel.exec_command("echo $HOME")
    assert box.encode() in channel.makefile().read()
    t.close()
    names = {r["name"] for r in srv.sql("SELECT name FROM sandbox")}
    assert f"{box}-other" not in names


def test_e3_strict_kex_is_advertised(srv):
    """CVE-2023-48795."""
    with raw.connect(srv.port) as s:
        s.sendall(raw.IDENT)
        assert raw.read_line(s).startswith(b"SSH-2.0-")
        lists = raw.kexinit_lists(raw.read_packet(s))
    assert "kex-strict-s-v00@openssh.com" in lists[0]
    assert not [k for k in lists[0] if "group1-" in k or "gex" in k]
    assert "ssh-rsa" not in lists[1]


@pytest.mark.parametrize(
    "payload", [b"\x02\0\0\0\1x", b"\x07\0\0\0\0", b"\x04\0\0\0\0\0\0\0\0\0"],
    ids=["ignore", "ext_info", "debug"],
)
def test_e3_strict_kex_ends_at_a_foreign_message(srv, payload):
    """Nothing but the key exchange may be sent before NEWKEYS."""
    with raw.connect(srv.port) as s:
        s.sendall(raw.IDENT)
        raw.read_line(s)
        raw.read_packet(s)
        s.sendall(raw.packet(raw.kexinit(
            "curve25519-sha256,kex-strict-c-v00@openssh.com")))
        s.sendall(raw.packet(payload))
        assert raw.read_until_closed(s, 20) is not None


# ---- user names --------------------------------------------------------------


REFUSED = [
    "", "+", "+x", "-la", "--help", "-oProxyCommand=touch x", "$(id)", "a;b",
    "`id`", "%h%r", "root --", "../../etc/x", "/tmp/x", ".", "..", "a/b",
    "a\\b", ".a", "_a", "a ", " a", "a\n", "a\nb", "a\u202eb", "a\u2028b",
    "\u00e9", "e\u0301", "a%2f..", "alice@corp.example", "a:b", "a@b@c",
    "DOM\\alice", "\u00e4lice", "a" * 64, "a" * 255, "a" * 10000, "a*", "a?",
    "box+ ", "box+a b", "box+/x", "box+..", "box+.a", "box+" + "n" * 64,
    "box++x", "admin", "admin+x", "exec\t", "box+a\u0301", "box+\u202e",
    "box+-oX", "~", "a~", "a,b", "a=b", "a\x1b[2J",
]


def test_e6_e7_e8_user_names_outside_the_alphabet(srv):
    """Options, paths, shells, Unicode: one rule, one failure, no trace."""
    before = set(os.listdir(srv.dir)), count(srv, "sandbox")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        wrong = [
            user for user, refused in zip(
                REFUSED, pool.map(lambda u: is_refused(srv, u), REFUSED)
            ) if not refused
        ]
    assert wrong == []
    assert (set(os.listdir(srv.dir)), count(srv, "sandbox")) == before
    assert "\x1b" not in srv.log() and "\u202e" not in srv.log()
    assert all(len(line) <= 4096 for line in srv.log().split("\n"))


def test_e7_a_nul_in_a_name_is_refused(srv):
    """Truncation at a NUL would be another identity."""
    for user in ("box\0x", "box\0", "\0"):
        assert is_refused(srv, user)


def test_e8_an_empty_and_an_endless_name_fail_as_any(srv):
    """With a stock client."""
    done = srv.ssh("a" * 10000, "true")
    assert done.returncode == 255  # the client's own message is cut
    lines = [x for x in srv.log()[srv.mark:].splitlines() if "refused" in x]
    assert len(lines) == 1 and len(lines[0]) < 512
    assert 'why="the user name is not valid"' in lines[0]


def test_e7_long_and_odd_valid_names_work_and_stay_apart(srv, box):
    """No socket path limit, no case folding."""
    long = (box + "x" * 63)[:63]
    for user in (f"{long}+{'n' * 63}", f"{box}.cast+a+b.cast", f"{box}C",
                 f"{box}c"):
        term = srv.term(user).ready()
        term.send("pwd; exit 12\r")
        assert term.wait() == 12
    homes = {srv.out(f"{box}{x}", "pwd") for x in ("C", "c")}
    assert len(homes) == 2


# ---- refusals tell nothing ----------------------------------------------------


def test_every_refusal_looks_the_same(srv, box):
    """Unknown key, bad user, bad glob: byte for byte the same stderr."""
    unknown = make_key(srv.dir / f"unknown{box}")
    glob = srv.add_key(f"glob{box}", 'sandbox="elsewhere"')
    expired = srv.add_key(f"old{box}", 'expiry-time="20200101"')
    far = srv.add_key(f"far{box}", 'from="192.0.2.0/24"')
    odd = srv.add_key(f"odd{box}", "no-such-option")
    ended = srv.add_key(f"ses{box}", 'session="only"')
    seen = {}
    for what, user, key in (
        ("unknown key", box, unknown), ("bad user", "a=b", srv.key),
        ("bad sandbox glob", box, glob), ("expired", box, expired),
        ("from", box, far), ("unknown option", box, odd),
        ("bad session glob", f"{box}+x", ended), ("admin", "admin", srv.key),
    ):
        done = srv.ssh(user, "echo in", key=key)
        text = done.stderr.replace(user.encode() + b"@", b"U@")
        seen[what] = (done.returncode, done.stdout, text)
    assert set(seen.values()) == {
        (255, b"", b"U@127.0.0.1: Permission denied (publickey).\r\n")
    }, seen
    assert count(srv, f"sandbox WHERE name = '{box}'") == 0


def test_options_of_a_key_hold(srv, box):
    """Globs, roles, no-pty, forced commands."""
    glob = srv.add_key(f"g{box}", f'sandbox="{box}*",session="a*,default"')
    assert srv.ssh(f"{box}1+abc", "exit 3", key=glob).returncode == 3
    assert srv.ssh(f"{box}1", "exit 3", key=glob).returncode == 3
    assert srv.ssh(f"{box}1+b", "exit 3", key=glob).returncode == 255
    forced = srv.add_key(
        f"f{box}", 'command="echo forced $SSH_ORIGINAL_COMMAND"'
    )
    done = srv.ssh(box, "rm -rf x", key=forced)
    assert done.stdout == b"forced rm -rf x\n"
    no_pty = srv.add_key(f"n{box}", "no-pty")
    done = srv.ssh(box, "tty", ["-tt"], key=no_pty)
    # OpenSSH's client gives up by itself when -tt is refused.
    assert done.returncode == 255
    assert b"PTY allocation request failed" in done.stderr
    assert srv.out(box, "tty; true", key=no_pty) == "not a tty\n"
    bare = srv.add_key(f"r{box}", "restrict,pty")
    done = srv.ssh(box, "tty", ["-tt"], key=bare)
    assert b"/dev/pts/" in done.stdout


def test_a_viewer_makes_and_runs_nothing(srv, box):
    """A viewer attaches to what runs, and only looks."""
    key = srv.add_key(f"v{box}", 'role="viewer"')
    assert srv.ssh(box, "echo in", key=key).returncode != 0
    done = srv.ssh(box, None, ["-tt"], key=key)
    assert done.returncode == 255 and b"berth: " in done.stdout + done.stderr
    assert srv.sessions(box, True) == []
    term = srv.term(box).ready()
    viewer = srv.term(box, key=key)
    viewer.expect(rb"ready_42")
    viewer.send("echo typed_$((1+1))\r\x03")
    viewer.resize(33, 11)
    term.send("echo mine_$((2+2)) $(stty size)\r")
    viewer.expect(rb"mine_4 24 80")
    term.ready()
    assert b"typed_2" not in term.text


def test_revocation_acts_on_the_next_connection(srv, box):
    """authorized_keys is read again when it changed; others go on."""
    key = srv.add_key(f"x{box}")
    assert srv.ssh(box, "true", key=key).returncode == 0
    lines = srv.keys_path.read_text().splitlines()
    blob = key.with_suffix(".pub").read_text().split()[1]
    srv.write_keys(*[x for x in lines if blob not in x])
    done = srv.ssh(box, "true", key=key)
    assert done.returncode == 255 and b"Permission denied" in done.stderr
    assert srv.ssh(box, "true").returncode == 0
    srv.write_keys(*lines)
    assert srv.ssh(box, "true", key=key).returncode == 0


def test_an_unsafe_key_file_opens_nothing(fresh, box):
    """A file that others may write is not believed."""
    srv = fresh()
    srv.keys_path.chmod(0o666)
    assert srv.ssh(box, "true").returncode == 255
    srv.keys_path.chmod(0o600)
    assert srv.ssh(box, "true").returncode == 0


# ---- E12 ------------------------------------------------------------------------


def agent_with(srv, name, keys):
    path = srv.dir / name
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", path], stdout=subprocess.DEVNULL
    )
    wait_for(path.exists)
    env = {**os.environ, "SSH_AUTH_SOCK": str(path)}
    for key in keys:
        run(["ssh-add", "-q", key], env=env).check_returncode()
    return agent, env


@pytest.mark.parametrize("known_last,code", [(True, 0), (False, 255)])
def test_e12_an_agent_full_of_keys(srv, box, known_last, code):
    """20 keys with the right one last get in; 25 wrong ones are ended."""
    keys = [
        make_key(srv.dir / f"ag{box}-{i}") for i in range(19 if known_last
                                                          else 25)
    ]
    if known_last:
        keys.append(srv.key)
    agent, env = agent_with(srv, f"agent{box}", keys)
    try:
        done = run([*srv.ssh_args(box, agent=True), "true"], 60, env=env)
    finally:
        end(agent)
    assert done.returncode == code, done.stderr
    if not known_last:
        assert b"Too many authentication failures" in done.stderr


def test_e12_brute_force_on_one_connection_ends(srv, box):
    """Passwords are never tried for long."""
    t = raw.transport(srv)
    tries = 0
    while t.is_active() and tries < 100:
        tries += 1
        try:
            t.auth_password(box, f"guess{tries}")
        except (paramiko.SSHException, EOFError, OSError):
            pass
        time.sleep(0.01)  # the reader's thread sees the end a moment later
    t.close()
    assert tries <= 12
    assert srv.ssh(box, "true").returncode == 0


def test_e12_honest_parallel_logins_all_succeed(srv, box):
    """Limits must not hit honest parallel clients."""
    clients = [srv.spawn(box, f"exit {i}") for i in range(30)]
    assert [c.wait(90) for c in clients] == list(range(30))


def test_half_open_peers_do_not_disturb(srv, box):
    """A peer that vanishes in the middle of the key exchange is forgotten."""
    for _ in range(5):
        s = raw.connect(srv.port)
        s.sendall(raw.IDENT)
        raw.read_line(s)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        s.close()
    assert srv.ssh(box, "true").returncode == 0
