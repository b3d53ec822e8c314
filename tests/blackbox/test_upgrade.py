"""`berth upgrade` and SIGUSR2: another program in the same process, and nobody
who is attached notices. What cannot begin leaves the old one running.
"""

import os
import re
import signal
import socket
import threading
import time

import pytest

import procs
import raw
from berth import IS_ROOT, run, wait_for


def upgrade(srv, version=None, **kw):
    """Replaces the programs and upgrades; what `berth upgrade` printed."""
    if version:
        srv.install(version)
    return srv.berth_ok("upgrade", timeout=60, **kw)


def identity(srv):
    p = procs.get(srv.proc.pid)
    return p.pid, p.start


@pytest.fixture
def own(fresh):
    """A server with programs of its own, not started yet."""
    def make(**options):
        srv = fresh(start=False, **options)
        srv.install()
        srv.start()
        return srv
    return make


def test_nothing_attached_notices(own, box):
    """Same process, same shell, same client, new channels on old connections,
    new logins; three times, the last to another version.
    """
    srv = own()
    before = identity(srv)
    mux = ["-o", "ControlMaster=auto", "-o", f"ControlPath={srv.dir}/mux"]
    term = srv.term(box, *mux).ready()
    pid = srv.sessions(box)[0]["pid"]
    version = srv.berth_ok("doctor")
    for new in (None, None, "9.9.9"):
        out = upgrade(srv, new)
        assert out.startswith("berthd was upgraded from ")
        assert identity(srv) == before
        term.send("echo st''ill $$\r")
        assert int(term.expect(rb"still (\d+)\r?\n").group(1)) == pid
        assert srv.out(box, "echo channel", opts=mux) == "channel\n"
        assert srv.out(box, "echo login") == "login\n"
        assert srv.sessions(box)[0]["attached"] == 1
        assert [r["identity"] for r in srv.json("who")] == ["tester"]
    assert out.endswith(" to 9.9.9\n")
    assert "session_adopted" not in srv.log()
    other = srv.term(box).ready()
    term.send("exit 9\r")
    assert term.wait() == 9 and other.wait() == 9
    assert srv.row(box, "default")["exit_code"] == 9
    events = [r["event"] for r in srv.sql("SELECT event FROM audit")]
    assert events.count("upgrade") == 3
    assert version


def test_under_load_no_byte_is_lost(own, box):
    """Streams down and up, a flood on a terminal, logins all the time, and
    three upgrades, the last to another version.
    """
    srv = own()
    done = threading.Event()
    failures = []

    def logins():
        while not done.is_set():
            got = srv.ssh(box, "echo fine; exit 3", timeout=60)
            if got.returncode != 3 or got.stdout != b"fine\n":
                failures.append(got)

    threads = [threading.Thread(target=logins) for _ in range(2)]
    size = 300 << 20
    down = srv.spawn(box, f"head -c {size} /dev/zero; exit 5")
    counts = []

    def drain():
        n = 0
        while chunk := down.stdout.read(1 << 20):
            n += len(chunk)
        counts.append(n)

    threads.append(threading.Thread(target=drain))
    term = srv.term(box).ready()
    term.send("for i in $(seq 1 30000); do echo line $i; done; echo do''ne\r")
    for t in threads:
        t.start()
    for new in (None, None, "9.9.9"):
        upgrade(srv, new)
        time.sleep(0.3)
    term.expect(rb"\ndone\r?\n", deadline=90)
    done.set()
    for t in threads:
        t.join(120)
    assert not failures, failures[0]
    assert counts == [size] and down.wait(30) == 5
    lines = [int(n) for n in re.findall(rb"line (\d+)\r", term.text)]
    assert lines == list(range(1, 30001))


def test_an_attach_under_way_is_not_cut(own, box):
    """A keeper that answers late holds the upgrade back, not the client."""
    srv = own()
    term = srv.term(box).ready()
    keeper = next(p for p in procs.children(srv.proc.pid)
                  if p.comm == "berth-session")
    os.kill(keeper.pid, signal.SIGSTOP)
    second = srv.term(box)
    time.sleep(0.3)
    asker = threading.Thread(target=upgrade, args=(srv,))
    asker.start()
    time.sleep(0.5)
    os.kill(keeper.pid, signal.SIGCONT)
    asker.join(30)
    second.ready()
    term.send("exit 2\r")
    assert term.wait() == 2 and second.wait() == 2


def test_a_stop_that_was_promised_outlives_an_upgrade(own, box):
    """The keeper of a session to be killed is silent until afterwards."""
    srv = own()
    srv.term(box).ready()
    session = srv.sessions(box)[0]
    keeper = next(p for p in procs.children(srv.proc.pid)
                  if p.comm == "berth-session")
    srv.kill()
    os.kill(keeper.pid, signal.SIGSTOP)
    try:
        srv.start()
        srv.berth_ok("kill", session["id"])
        upgrade(srv)
    finally:
        os.kill(keeper.pid, signal.SIGCONT)
    assert srv.row(box)["status"] == "killed"


def test_sigusr2_does_it_too(own, box):
    srv = own()
    term = srv.term(box).ready()
    srv.install("9.9.9")
    srv.proc.send_signal(signal.SIGUSR2)
    wait_for(lambda: re.search(r"upgraded from=\S+ to=9\.9\.9", srv.log()))
    term.send("exit 4\r")
    assert term.wait() == 4


def test_logins_under_way_go_on(own, box):
    """Not authenticated yet: the grace goes on where it was."""
    srv = own(server__login_grace="6s")
    start = time.monotonic()
    with raw.connect(srv.port) as s:
        time.sleep(1)
        upgrade(srv)
        s.sendall(b"SSH-2.0-late\r\n")
        assert raw.read_until_closed(s, 20) is not None
    assert time.monotonic() - start < 12
    assert srv.out(box, "echo fine") == "fine\n"


def test_limits_still_count_who_was_there(own, box):
    srv = own(server__max_connections="2")
    terms = [srv.term(box).ready(), srv.term(box).ready()]
    upgrade(srv)
    assert srv.ssh(box, "true", timeout=20).returncode == 255
    terms[0].kill()
    terms[0].wait()
    wait_for(lambda: srv.ssh(box, "true", timeout=20).returncode == 0)


def test_restrictions_of_a_key_stay_bound(own, box):
    """The identity is not asked again, and nothing of it is lost."""
    srv = own()
    viewer = srv.add_key("watcher", f'role="viewer",sandbox="{box}"')
    forced = srv.add_key("forced", 'command="echo $SSH_ORIGINAL_COMMAND"')
    owner = srv.term(box).ready()
    path = srv.dir / "mux"
    mux = ["-o", "ControlMaster=auto", "-o", f"ControlPath={path}"]
    term = srv.term(box, *mux, key=viewer)
    wait_for(lambda: len(srv.json("who")) == 2)
    mux2 = ["-o", "ControlMaster=auto", "-o", f"ControlPath={path}2",
            "-o", "ControlPersist=60"]
    assert srv.out(box, "one", opts=mux2, key=forced) == "one\n"
    srv.write_keys(srv.key_line(srv.key, 'role="owner",admin'))
    upgrade(srv)
    assert srv.out(box, "two", opts=mux2, key=forced) == "two\n"
    late = srv.ssh(box, "echo no", opts=mux, key=viewer)
    assert late.returncode != 0 and late.stdout == b""
    term.send("echo no\r")
    owner.send("echo ye''s\r")
    term.expect(rb"yes\r?\n")
    assert b"echo no" not in owner.text
    run(["ssh", "-O", "exit", "-o", f"ControlPath={path}2", "x"])


def test_control_connections_stay(own, box):
    """`berth tail -f` and a half-sent request go on."""
    srv = own()
    srv.term(box).ready()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(srv.socket))
        s.sendall(b'{"verb": "sta')
        time.sleep(0.2)
        upgrade(srv, "9.9.9")
        s.sendall(b'tus"}\n')
        answer = b""
        while b"\n" not in answer:
            answer += s.recv(4096)
        assert b'"version":"9.9.9"' in answer
        assert f'"pid":{srv.proc.pid}'.encode() in answer


def test_a_client_that_asked_much_meanwhile_is_not_forgotten(own, box):
    """More than fits while requests are held back, and then no upgrade."""
    import sqlite3

    srv = own()
    srv.term(box).ready()
    lock = sqlite3.connect(srv.state / "berth.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    srv.term(box).ready()
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(str(srv.socket))
        answers = []
        asker = threading.Thread(
            target=lambda: answers.append(srv.berth("upgrade", timeout=60)))
        asker.start()
        time.sleep(1.5)
        line = b'{"verb": "%s"}\n' % (b"x" * 1000)
        s.sendall(line * 200)
        asker.join(60)
        lock.execute("ROLLBACK")
        lock.close()
        assert answers[0].returncode == 1 and b"store" in answers[0].stderr
        got = b""
        while got.count(b"\n") < 200:
            got += s.recv(65536)


def test_a_second_upgrade_meanwhile_is_refused(own, box):
    srv = own()
    answers = []

    def ask():
        answers.append(srv.berth("upgrade", timeout=60))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    codes = sorted(a.returncode for a in answers)
    assert codes[0] == 0 and set(codes) <= {0, 4}
    for a in answers:
        assert a.returncode == 0 or b"under way" in a.stderr
    assert srv.out(box, "echo fine") == "fine\n"


BAD_PROGRAMS = {
    "true": lambda p: p.write_bytes(open("/bin/true", "rb").read()),
    "text": lambda p: p.write_bytes(b"no program"),
    "empty": lambda p: p.write_bytes(b""),
    "missing": lambda p: p.unlink(),
    "hangs": lambda p: p.write_bytes(b"#!/bin/sh\nexec sleep 100\n"),
}


@pytest.mark.parametrize("what", BAD_PROGRAMS)
def test_a_program_that_would_not_start_changes_nothing(own, box, what):
    srv = own()
    before = identity(srv)
    term = srv.term(box).ready()
    program = srv.bin / "berthd"
    if what == "missing":
        program.unlink()
    else:
        new = srv.bin / "berthd.new"
        BAD_PROGRAMS[what](new)
        new.chmod(0o755)
        new.rename(program)
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and got.stderr.count(b"\n") == 1, got
    assert identity(srv) == before
    term.send("echo st''ill\r")
    term.expect(rb"still\r?\n")
    assert srv.out(box, "echo login") == "login\n"
    srv.install("9.9.9")
    assert srv.berth_ok("upgrade").endswith("to 9.9.9\n")


def test_a_bad_configuration_stops_an_upgrade(own, box):
    srv = own()
    good = srv.conf.read_text()
    srv.conf.write_text(good + "\n[nonsense]\nx = 1\n")
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and b"nonsense" in got.stderr
    srv.conf.write_text(good)
    assert srv.out(box, "echo fine") == "fine\n"


REFUSALS = {
    "state_dir": "state_dir",
    "runtime_dir": "runtime_dir",
    "host_key": "host key",
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_cannot_change_is_refused_before(own, box, what):
    srv = own()
    good = srv.conf.read_text()
    bad = srv.dir / "bad"
    if what == "host_key":
        bad.write_bytes(b"no key")
        bad.chmod(0o600)
    srv.options[f"server.{what}"] = bad
    srv.write_conf()
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and REFUSALS[what].encode() in got.stderr, got
    assert got.stderr.count(b"\n") == 1
    srv.conf.write_text(good)
    assert srv.out(box, "echo fine") == "fine\n"


def test_a_newer_store_is_refused_before(own, box):
    srv = own()
    srv.out(box, "true")

    def schema(n):
        run(["sqlite3", srv.state / "berth.db", ".timeout 5000",
             f"PRAGMA user_version = {n}"])

    [was] = srv.sql("PRAGMA user_version")
    schema(99)
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and b"schema 99" in got.stderr
    schema(was["user_version"])
    assert srv.out(box, "echo fine") == "fine\n"


def test_a_program_that_fails_after_all_gives_way_to_the_old(own, box, as_root):
    """It passed the rehearsal and cannot begin: the old one is executed again,
    with the configuration and everything else that it had.
    """
    srv = own()
    before = identity(srv)
    mux = ["-o", "ControlMaster=auto", "-o", f"ControlPath={srv.dir}/mux"]
    term = srv.term(box, *mux).ready()
    good = srv.conf.read_text()
    bad = srv.dir / "of-somebody-else"
    bad.mkdir()
    os.chown(bad, 65534, 65534)
    srv.options["recording.dir"] = bad
    srv.write_conf()
    # Put aside, not replaced: the path is still where a new one is found.
    (srv.bin / "berthd").rename(srv.bin / "berthd.old")
    srv.install("9.9.9")
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and b"of-somebody-else" in got.stderr, got
    assert identity(srv) == before
    assert "upgrade_undone" in srv.log()
    assert procs.get(srv.proc.pid).comm == "berthd"
    assert srv.out(box, "echo channel", opts=mux) == "channel\n"
    assert srv.out(box, "echo login") == "login\n"
    srv.conf.write_text(good)
    assert srv.berth_ok("upgrade").endswith("to 9.9.9\n")
    term.send("exit 6\r")
    assert term.wait() == 6
    assert srv.row(box, "default")["exit_code"] == 6


def test_a_configuration_broken_after_the_rehearsal_is_undone(own, box):
    """An attach holds the upgrade back, and meanwhile somebody saves half a
    file: the old program comes back with the configuration that it had.
    """
    srv = own()
    before = identity(srv)
    term = srv.term(box).ready()
    keeper = next(p for p in procs.children(srv.proc.pid)
                  if p.comm == "berth-session")
    os.kill(keeper.pid, signal.SIGSTOP)
    second = srv.term(box)
    time.sleep(0.5)
    good = srv.conf.read_text()
    answers = []
    asker = threading.Thread(
        target=lambda: answers.append(srv.berth("upgrade", timeout=60)))
    asker.start()
    time.sleep(1)
    srv.conf.write_text(good + "\n[nonsense]\nx = 1\n")
    os.kill(keeper.pid, signal.SIGCONT)
    asker.join(60)
    assert answers[0].returncode == 1, answers
    assert b"nonsense" in answers[0].stderr
    assert identity(srv) == before
    srv.conf.write_text(good)
    assert srv.out(box, "echo login") == "login\n"
    second.kill()
    term.send("exit 6\r")
    assert term.wait() == 6


def test_signals_between_two_programs_wait(own, box):
    """A reload, and a second upgrade, while the new program begins."""
    srv = own()
    calls = srv.dir / "calls"
    real = srv.bin / "berth-sshd.real"
    (srv.bin / "berth-sshd").rename(real)
    slow = srv.bin / "berth-sshd"
    slow.write_text("#!/bin/sh\n[ -n \"$1\" ] || exec %s\necho x >> %s\n"
                    "sleep 1\nexec %s \"$@\"\n" % (real, calls, real))
    slow.chmod(0o755)
    before = identity(srv)
    term = srv.term(box).ready()
    answers = []
    asker = threading.Thread(
        target=lambda: answers.append(srv.berth("upgrade", timeout=60)))
    asker.start()
    wait_for(lambda: calls.exists() and len(calls.read_text()) == 4)
    os.kill(srv.proc.pid, signal.SIGHUP)
    os.kill(srv.proc.pid, signal.SIGUSR2)
    asker.join(60)
    assert answers[0].returncode == 0, answers
    wait_for(lambda: srv.log().count(" upgraded ") == 2)
    assert " reload" in srv.log() and identity(srv) == before
    term.send("exit 6\r")
    assert term.wait() == 6


def test_a_program_that_reads_no_such_handoff_says_so(own):
    """A jump over versions is refused while that changes nothing yet."""
    srv = own()
    where = f"{srv.state}:{srv.runtime}"
    for version, status in ((1, 0), (99, 1), (0, 1)):
        got = run([srv.bin / "berthd", "-c", srv.conf,
                   f"--rehearse={version}:{where}"])
        assert got.returncode == status, got
        assert status == 0 or b"cannot go on" in got.stderr, got


def test_e14_children_of_before_are_reaped_afterwards(own, box):
    srv = own()
    terms = [srv.term(f"{box}+{i}").ready() for i in range(3)]
    upgrade(srv)
    for t in terms:
        t.send("exit\r")
        t.wait()
    wait_for(lambda: not procs.children(srv.proc.pid))
    assert os.listdir(srv.runtime / "sessions") == []


def test_descriptors_do_not_pile_up(own, box):
    """Not even those by which the former program could have come back."""
    srv = own()
    assert srv.out(box, "echo fine") == "fine\n"
    wait_for(lambda: not procs.children(srv.proc.pid))
    home = f"/proc/{srv.proc.pid}/fd"

    def held():
        return sorted(re.sub(r"\d+", "N", os.readlink(f"{home}/{n}"))
                      for n in os.listdir(home))

    before = held()
    for new in (None, "9.9.9", None):
        upgrade(srv, new)
        wait_for(lambda: held() == before, 10, f"{before} again: {held()}")


@pytest.mark.skipif(not IS_ROOT, reason="explained: as root in the full run")
def test_a_locked_store_postpones_an_upgrade(own, box):
    """Nothing is executed while rows wait that exist nowhere else."""
    import sqlite3

    srv = own()
    term = srv.term(box).ready()
    lock = sqlite3.connect(srv.state / "berth.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    other = srv.term(box).ready()
    got = srv.berth("upgrade", timeout=60)
    assert got.returncode == 1 and b"store" in got.stderr
    lock.execute("ROLLBACK")
    lock.close()
    upgrade(srv)
    term.send("exit 8\r")
    assert term.wait() == 8 and other.wait() == 8
