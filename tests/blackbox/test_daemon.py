"""berthd itself: limits, garbage, start and refusal, files and their modes.
Numbers are the field cases'.
"""

import os
import re
import signal
import socket
import stat
import time

import pytest

import procs
import raw
from berth import BUILD, Failure, free_port, run, wait_for


# ---- B17: what is no SSH --------------------------------------------------------


GARBAGE = {
    "http": (b"GET / HTTP/1.0\r\n\r\n", 8),
    "ssh1": (b"SSH-1.5-x\r\n", 8),
    "long_line": (b"A" * 100000, 8),
    "tls": (b"\x16\x03\x01\x02", 30),
    "junk_after_ident": (b"SSH-2.0-a\nb", 30),
    "silence": (b"", 30),
    "binary": (bytes(range(256)) * 64, 30),
}


@pytest.fixture(scope="module")
def strict():
    from berth import Server

    server = Server(server__login_grace="4s")
    yield server
    server.close()


@pytest.mark.parametrize("what", GARBAGE)
def test_b17_garbage_is_let_go(strict, what):
    """At once where it can be told, by the login grace where it cannot."""
    text, limit = GARBAGE[what]
    start = time.monotonic()
    with raw.connect(strict.port) as s:
        try:
            s.sendall(text)
        except OSError:
            pass
        assert raw.read_until_closed(s, limit) is not None
    if limit > 10:
        assert time.monotonic() - start < 20
    strict.check_log()


def test_b17_a_trickle_ends_with_the_grace(strict):
    """One byte at a time does not buy time."""
    start = time.monotonic()
    with raw.connect(strict.port) as s:
        for byte in b"SSH-2.0-slow_and_slower_and_slower_and_slower":
            s.settimeout(0.5)
            try:
                s.sendall(bytes([byte]))
                while s.recv(4096):
                    pass
                break
            except socket.timeout:
                continue
            except OSError:
                break
    assert time.monotonic() - start < 20


def test_b17_an_ident_that_ends_in_lf_is_accepted(strict):
    """As OpenSSH does."""
    with raw.connect(strict.port) as s:
        s.sendall(b"SSH-2.0-a\n")
        raw.read_line(s)
        assert raw.read_packet(s)[0] == 20


def test_b17_silent_crowd_does_not_stop_a_login(strict, box):
    """A real login in the middle of it; everything returns to the base."""
    strict.out(box, "true")
    wait_for(lambda: not strict.sessions(box))
    base = procs.fd_count(strict.proc.pid)
    crowd = [raw.connect(strict.port) for _ in range(40)]
    start = time.monotonic()
    assert strict.out(box, "echo in") == "in\n"
    assert time.monotonic() - start < 15
    for s in crowd:
        assert raw.read_until_closed(s, 30) is not None
        s.close()
    wait_for(
        lambda: procs.fd_count(strict.proc.pid) <= base + 1, 15, "fds at base"
    )
    wait_for(lambda: not procs.zombies(strict.proc.pid), 15, "no zombies")


def test_login_grace_ends_a_client_that_never_proves(strict):
    """The whole time before authentication counts, whatever is said."""
    start = time.monotonic()
    t = raw.transport(strict)
    wait_for(lambda: not t.is_active(), 30, "ended by the grace")
    assert 2 < time.monotonic() - start < 20
    t.close()


# ---- limits ---------------------------------------------------------------------


def opened(port, n, source=None):
    """Of N idle connections, those that are greeted."""
    socks = [raw.connect(port, source) for _ in range(n)]
    kept = []
    for s in socks:
        try:
            s.settimeout(20)
            if s.recv(4) == b"SSH-":
                kept.append(s)
                continue
        except OSError:
            pass
        s.close()
    return kept


def test_max_per_source_limits_one_address(fresh, box):
    """One address cannot take all slots; another one still gets in."""
    srv = fresh(server__max_per_source="3")
    kept = opened(srv.port, 6)
    assert len(kept) == 3
    done = srv.ssh(box, "true", timeout=60)
    assert done.returncode == 255
    assert srv.ssh(box, "exit 4", ["-b", "127.0.0.2"]).returncode == 4
    for s in kept:
        s.close()
    wait_for(lambda: srv.ssh(box, "exit 5").returncode == 5, 30,
             "slots come back")


def test_max_startups_limits_the_unauthenticated(fresh, box):
    """Random early drop above half; never more than the limit."""
    srv = fresh(server__max_startups="6")
    kept = opened(srv.port, 24)
    assert 3 <= len(kept) <= 6
    for s in kept:
        s.close()
    wait_for(lambda: srv.ssh(box, "exit 5").returncode == 5, 30,
             "slots come back")


def test_max_connections_limits_the_total(fresh, box):
    """Authenticated ones count."""
    srv = fresh(server__max_connections="2")
    terms = [srv.term(box).ready() for _ in range(2)]
    assert srv.ssh(box, "true").returncode == 255
    terms[0].kill()
    wait_for(lambda: srv.ssh(box, "exit 5").returncode == 5, 30,
             "a slot comes back")


def test_e5_flood_with_few_descriptors(fresh, box):
    """1000 idle connections against 256 descriptors: the listener neither
    ends nor spins, sessions go on, it recovers alone.
    """
    srv = fresh(
        prefix=["prlimit", "--nofile=256:256"], server__max_per_source="16",
        server__max_startups="100", server__login_grace="60s",
    )
    term = srv.term(box).ready()
    crowd = []
    for i in range(400):
        try:
            crowd.append(raw.connect(srv.port, f"127.0.1.{i % 60 + 1}", 5))
        except OSError:
            break
    cpu, start = procs.get(srv.proc.pid).cpu_s, time.monotonic()
    term.ready()
    wait_for(lambda: time.monotonic() - start > 3, 5, "three seconds")
    assert procs.get(srv.proc.pid).cpu_s - cpu < 2.0
    for s in crowd:
        s.close()
    wait_for(lambda: srv.ssh(box, "exit 5").returncode == 5, 60, "recovered")
    term.ready()


def test_e5_running_out_of_descriptors_is_survived(fresh, box):
    """EMFILE in accept is retried with back-off, not spun on."""
    srv = fresh(prefix=["prlimit", "--nofile=48:48"])
    crowd = [raw.connect(srv.port, None, 10) for _ in range(80)]
    cpu, start = procs.get(srv.proc.pid).cpu_s, time.monotonic()
    wait_for(lambda: time.monotonic() - start > 3, 5, "three seconds")
    assert srv.is_running()
    assert procs.get(srv.proc.pid).cpu_s - cpu < 2.0
    for s in crowd:
        s.close()
    wait_for(lambda: srv.ssh(box, "exit 5").returncode == 5, 60, "recovered")


def test_max_per_sandbox(fresh, box):
    """The refusal is one line on stderr and 255."""
    srv = fresh(session__max_per_sandbox="2")
    for i in range(2):
        srv.berth_ok("new", "-s", box, "-n", f"n{i}", "--", "sleep", "600")
    done = srv.ssh(box, "true")
    assert done.returncode == 255 and done.stdout == b""
    assert done.stderr.startswith(b"berth: ") and done.stderr.count(b"\n") == 1


def test_autocreate_off_makes_no_sandbox(fresh, box):
    """access.autocreate = no."""
    srv = fresh(access__autocreate="no")
    done = srv.ssh(box, "true")
    assert done.returncode == 255
    assert srv.sql("SELECT id FROM sandbox") == []


# ---- start, second, busy, -t --------------------------------------------------------


def test_a_second_berthd_refuses_and_names_the_first(fresh):
    """Two managers on one state would tear it apart."""
    srv = fresh()
    done = run([BUILD / "berthd", "-c", srv.conf])
    assert done.returncode == 1
    assert str(srv.proc.pid).encode() in done.stderr
    assert srv.is_running()


def test_a_busy_port_is_a_sentence(fresh):
    """Not an errno."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        srv = fresh(start=False, server__listen=f"127.0.0.1:{port}")
        done = run([BUILD / "berthd", "-c", srv.conf])
    assert done.returncode == 1
    assert f"127.0.0.1:{port} is in use".encode() in done.stderr


def test_several_addresses(fresh, box):
    """server.listen takes a list; v6 in brackets."""
    one, two = free_port(), free_port()
    srv = fresh(server__listen=f"127.0.0.1:{one}, [::1]:{two}")
    assert srv.port == one
    with socket.create_connection(("::1", two), 10) as s:
        assert s.recv(4) == b"SSH-"
    assert srv.ssh(box, "exit 3").returncode == 3


WRONG = [
    ("[server]\nlisten = nowhere\n", 2, "server.listen"),
    ("[server]\n\nlogin_grace = soon\n", 3, "server.login_grace"),
    ("[server]\nnosuch = 1\n", 2, "server.nosuch"),
    ("[nosuch]\nkey = 1\n", 1, "nosuch"),
    ("[session]\nbuffer = 12Q\n", 2, "session.buffer"),
    ("[session]\nresize = sideways\n", 2, "session.resize"),
    ("[recording]\non_error = maybe\n", 2, "recording.on_error"),
    ("[server]\nmax_channels = -1\n", 2, "server.max_channels"),
    ("[access]\nautocreate = perhaps\n", 2, "access.autocreate"),
]


@pytest.mark.ordinary
@pytest.mark.parametrize("text,line,key", WRONG)
def test_t_says_file_line_and_key(tmp_path, text, line, key):
    """`berthd -t` checks and ends; the sentence names the place."""
    conf = tmp_path / "x.conf"
    conf.write_text(text)
    done = run([BUILD / "berthd", "-t", "-c", conf])
    assert done.returncode == 1
    assert f"{conf}:{line}: {key}".encode() in done.stderr


@pytest.mark.ordinary
def test_t_accepts_and_show_config_is_loadable(fresh, tmp_path):
    """What --show-config prints is a configuration that -t accepts."""
    srv = fresh(start=False)
    assert run([BUILD / "berthd", "-t", "-c", srv.conf]).returncode == 0
    shown = run([
        BUILD / "berthd", "-c", srv.conf, "-o", "session.buffer=2M",
        "--show-config",
    ])
    assert shown.returncode == 0 and b"2M" in shown.stdout
    again = tmp_path / "again.conf"
    again.write_bytes(shown.stdout)
    assert run([BUILD / "berthd", "-t", "-c", again]).returncode == 0
    twice = run([BUILD / "berthd", "-c", again, "--show-config"])
    assert twice.stdout == shown.stdout
    assert b"berth" in run([BUILD / "berthd", "--version"]).stdout
    assert run([BUILD / "berthd", "--no-such-option"]).returncode != 0
    wrong = run([BUILD / "berthd", "-t", "-c", srv.conf, "-o", "a.b=c"])
    assert wrong.returncode == 1 and b"a.b" in wrong.stderr


def test_ready_is_sent_to_the_service_manager(fresh):
    """READY=1 when NOTIFY_SOCKET is set."""
    srv = fresh(start=False)
    path = str(srv.dir / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(path)
        s.settimeout(30)
        srv.prefix = ["env", f"NOTIFY_SOCKET={path}"]
        srv.start()
        assert b"READY=1" in s.recv(4096)


def test_json_log(fresh, box):
    """log_format = json: every line is an object."""
    import json

    srv = fresh(start=False, server__log_format="json")
    srv.find_ready = lambda start=0: next(
        (int(m) for m in re.findall(
            r'"event":"ready".*?"addr":"127\.0\.0\.1:(\d+)"',
            srv.log()[start:])), None,
    )
    srv.start()
    assert srv.ssh(box, "exit 2").returncode == 2
    lines = [json.loads(x) for x in srv.log().splitlines()]
    assert {"ready", "accepted"} <= {x["event"] for x in lines}


def test_sighup_reloads_keys_and_level(fresh, box):
    """SIGHUP does not disturb anyone."""
    srv = fresh()
    term = srv.term(box).ready()
    srv.options["server.log_level"] = "debug"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    wait_for(
        lambda: srv.ssh(box, "true").returncode == 0
        and " debug " in srv.log(), 30, "debug lines",
    )
    term.ready()
    srv.options["server.log_level"] = "nonsense"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: "log_level" in srv.log(), 20, "the refusal logged")
    term.ready()


def test_sigterm_says_why_and_ends_all(fresh, box):
    """on_shutdown = kill: connections hear a reason, shells are gone, the
    store knows.
    """
    srv = fresh()
    term = srv.term(box).ready()
    pid = srv.session(box)["pid"]
    assert srv.stop() == 0
    assert term.wait() != 0
    assert not procs.in_session(pid)
    assert srv.row(box)["status"] in ("killed", "exited")
    assert srv.recording(box, "complete")
    open_rows = srv.sql(
        "SELECT id FROM attachment WHERE detached_ms IS NULL")
    assert open_rows == []


def test_sigterm_with_keep_leaves_the_shell(fresh, box):
    """on_shutdown = keep, the default: the shell does not die with berthd."""
    srv = fresh(session__on_shutdown="keep")
    term = srv.term(box).ready()
    pid = srv.session(box)["pid"]
    keeper = procs.get(pid)
    keeper = procs.get(keeper.ppid)
    assert srv.stop() == 0
    assert term.wait() != 0
    assert procs.is_alive(pid)
    procs.kill([keeper, procs.get(pid)])
    wait_for(lambda: not procs.is_alive(pid), 10, "cleared up")


# ---- E15: files -----------------------------------------------------------------


def test_e15_modes_are_private_whatever_the_umask(fresh, box):
    """Dirs 0700, files 0600, also under umask 0."""
    srv = fresh(umask=0)
    term = srv.term(box).ready()
    wrong = []
    for top in (srv.state, srv.runtime):
        for folder, _, files in os.walk(top):
            paths = [folder] + [os.path.join(folder, f) for f in files]
            for path in paths:
                info = os.lstat(path)
                mode = stat.S_IMODE(info.st_mode)
                want = 0o700 if stat.S_ISDIR(info.st_mode) else 0o600
                if mode & ~want and not path.endswith(".pub"):
                    wrong.append((path, oct(mode)))
    assert wrong == []
    assert stat.S_IMODE(os.stat(srv.boxes).st_mode) == 0o711
    assert srv.out(box, "umask") in ("0022\n", "022\n")
    term.ready()


@pytest.mark.parametrize("what", ["state", "runtime"])
def test_e15_a_directory_that_others_may_write_is_refused(fresh, what):
    """A directory prepared by somebody else is a trap."""
    srv = fresh(start=False)
    path = getattr(srv, what)
    path.mkdir(mode=0o700)
    path.chmod(0o777)
    done = run([BUILD / "berthd", "-c", srv.conf])
    assert done.returncode == 1 and str(path).encode() in done.stderr


def test_e15_a_directory_of_somebody_else_is_refused(fresh, as_root):
    """The same for its owner."""
    srv = fresh(start=False)
    srv.state.mkdir(mode=0o700)
    os.chown(srv.state, 65534, 65534)
    done = run([BUILD / "berthd", "-c", srv.conf])
    assert done.returncode == 1 and str(srv.state).encode() in done.stderr


def test_e15_symlinks_in_place_are_not_followed(fresh, box):
    """Neither for a workspace nor for a recording's folder."""
    srv = fresh()
    trap = srv.dir / "trap"
    trap.mkdir()
    (srv.state / "recordings").mkdir(mode=0o700, exist_ok=True)
    (srv.state / "recordings" / box).symlink_to(trap)
    term = srv.term(box)
    try:
        term.ready()
        term.send("exit\r")
        term.wait()
    except Failure:
        pass
    assert list(trap.iterdir()) == []
    (srv.boxes / f"{box}w").symlink_to(trap)
    assert srv.ssh(f"{box}w", "pwd; touch x").returncode == 255
    assert list(trap.iterdir()) == []


def test_a_bad_host_key_is_never_overwritten(fresh):
    """A sentence, and the file stays as it is."""
    srv = fresh(start=False)
    srv.state.mkdir(mode=0o700)
    path = srv.state / "ssh_host_ed25519_key"
    path.write_text("nonsense\n")
    path.chmod(0o600)
    done = run([BUILD / "berthd", "-c", srv.conf])
    assert done.returncode == 1 and str(path).encode() in done.stderr
    assert path.read_text() == "nonsense\n"


def test_the_host_key_stays_the_same(fresh):
    """A restart must not frighten every client."""
    srv = fresh()
    path = srv.state / "ssh_host_ed25519_key"
    before = path.read_bytes()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run(["ssh-keygen", "-y", "-f", path]).returncode == 0
    assert srv.stop() == 0
    srv.start()
    assert path.read_bytes() == before


def test_processes_are_apart_as_designed(fresh, box):
    """One berth-sshd a connection, one berth-session a session, no setuid
    root for the network side when it can be dropped.
    """
    import pwd

    srv = fresh()
    terms = [srv.term(box).ready(), srv.term(f"{box}+b").ready()]
    family = procs.descendants(srv.proc.pid)
    names = [p.comm for p in family]
    assert names.count("berth-sshd") == 2
    assert names.count("berth-session") == 2
    if os.geteuid() != 0:
        return
    try:
        net = pwd.getpwnam("berth-net").pw_uid
    except KeyError:
        pytest.skip("explained: no user berth-net here")
    for p in family:
        if p.comm == "berth-sshd":
            assert os.stat(f"/proc/{p.pid}/task").st_uid in (0, net)
            with open(f"/proc/{p.pid}/status", encoding="ascii") as f:
                text = f.read()
            assert f"Uid:\t{net}\t{net}\t{net}\t{net}" in text
            assert "NoNewPrivs:\t1" in text
    assert terms[0].proc.poll() is None


def test_a_killed_berthd_leaves_sessions_and_the_next_adopts_them(fresh, box):
    """The manager dies; shell and client go on; a new manager knows them."""
    srv = fresh()
    term = srv.term(box).ready()
    pid = srv.sessions(box)[0]["pid"]
    srv.proc.kill()
    srv.proc.wait(20)
    term.send("echo al''one\r")
    term.expect(rb"[\r\n]alone\r\n")
    srv.start()
    row = srv.sessions(box)[0]
    assert row["status"] == "running" and row["pid"] == pid
    term.send("exit 6\r")
    assert term.wait() == 6
    assert srv.row(box)["exit_code"] == 6
