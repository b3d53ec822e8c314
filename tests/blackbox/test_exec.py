"""exec and shell requests without sharing: codes, signals, pipes, ends.
Numbers are those of the field cases that a test guards.
"""

import asyncio
import hashlib
import os
import signal
import subprocess
import threading
import time

import asyncssh
import pytest

import procs
from berth import Failure, end, free_port, run, wait_for

MEG = 1 << 20


async def connect(srv, user):
    return await asyncssh.connect(
        "127.0.0.1", srv.port, username=user, client_keys=[str(srv.key)],
        known_hosts=None, config=None, agent_path=None,
    )


# ---- B1, B2, B4: the connection ----------------------------------------


def test_b1_client_keepalive_is_answered(srv, box):
    """A client with ServerAliveInterval drops a server that ignores it."""
    done = srv.ssh(
        box, "sleep 6; echo alive",
        ["-o", "ServerAliveInterval=1", "-o", "ServerAliveCountMax=2"],
    )
    assert (done.returncode, done.stdout) == (0, b"alive\n")


def test_b1_unknown_requests_are_refused_once_and_harmless(srv, box):
    """Unknown global and channel requests get one failure each, in order."""

    async def talk():
        async with await connect(srv, box) as conn:
            kind, _ = await conn._make_global_request(b"zz@example.com")
            assert kind == 82
            kind, _ = await conn._make_global_request(
                b"keepalive@openssh.com"
            )
            assert kind in (81, 82)
            proc = await conn.create_process("sleep 1; echo alive; exit 3")
            told = await proc.channel._make_request(b"zz@example.com")
            assert told is False
            proc.channel._send_request(b"yy@example.com")
            done = await proc.wait()
            assert (done.exit_status, done.stdout) == (3, "alive\n")

    asyncio.run(asyncio.wait_for(talk(), 60))


def open_master(srv, user):
    path = srv.dir / f"cm-{user}"
    master = srv.spawn(user, None, ["-M", "-S", str(path), "-N"])
    wait_for(
        lambda: run(["ssh", "-S", path, "-O", "check", "x"]).returncode == 0,
        60, "the master connection",
    )
    return master, ["-S", str(path), "-o", "ControlMaster=no"]


def test_b2_nine_channels_have_their_own_output_and_code(srv, box):
    """A second channel on one connection must not disturb the first; one
    that is killed in mid-transfer hurts no other.
    """
    _, opts = open_master(srv, box)
    first = srv.spawn(box, "sleep 8; echo first", opts)
    victim = srv.spawn(box, "cat /dev/zero", opts)
    victim.stdout.read(2 * MEG)
    rest = [
        srv.spawn(box, f"sleep 1; echo {i}; echo e{i} >&2; exit {i % 7}", opts)
        for i in range(7)
    ]
    victim.kill()
    for i, child in enumerate(rest):
        out, err = child.communicate(timeout=60)
        assert (out, err, child.returncode) == (
            b"%d\n" % i, b"e%d\n" % i, i % 7,
        )
    assert first.communicate(timeout=60)[0] == b"first\n"
    assert first.returncode == 0
    peers = {r["id"] for r in srv.sessions(box)}
    wait_for(lambda: not srv.sessions(box), 15, f"{peers} ended")


def test_b2_past_the_channel_limit_only_that_channel_is_refused(fresh, box):
    """Past the limit the open fails; the connection and the rest stay up."""
    srv = fresh(server__max_channels="3")

    async def talk():
        async with await connect(srv, box) as conn:
            kept = [await conn.create_process("cat") for _ in range(3)]
            with pytest.raises(asyncssh.ChannelOpenError):
                await conn.create_process("true")
            for i, proc in enumerate(kept):
                proc.stdin.write(f"{i}\n")
                proc.stdin.write_eof()
                assert (await proc.wait()).stdout == f"{i}\n"
            assert (await conn.run("echo again")).stdout == "again\n"

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_b2_a_process_that_ends_early_hurts_no_other_channel(srv, box):
    """Its client still sends when CLOSE comes. Whatever berth said of that
    channel afterwards, asyncssh would end the whole connection for.
    """

    async def early(conn):
        proc = await conn.create_process(
            "head -c 700000 | wc -c; exit 3", encoding=None)
        try:
            for _ in range(200):
                proc.stdin.write(bytes(100_000))
            proc.stdin.write_eof()
        except BrokenPipeError:
            pass
        done = await proc.wait()
        assert (done.exit_status, done.stdout) == (3, b"700000\n")

    async def talk():
        async with await connect(srv, box) as conn:
            for _ in range(5):
                await early(conn)
                assert (await conn.run("echo on")).stdout == "on\n"

    asyncio.run(asyncio.wait_for(talk(), 60))


def zero_hash(n):
    digest, block = hashlib.sha256(), bytes(MEG)
    for _ in range(n // MEG):
        digest.update(block)
    return digest.hexdigest()


def test_b4_rekey_in_the_middle_of_a_download(srv, box):
    """Data between KEXINIT and NEWKEYS ends a connection."""
    child = srv.spawn(
        box, "head -c 33554432 /dev/zero", ["-o", "RekeyLimit=4M"]
    )
    digest, n = hashlib.sha256(), 0
    while chunk := child.stdout.read(MEG):
        digest.update(chunk)
        n += len(chunk)
    assert (child.wait(60), n) == (0, 32 * MEG), child.stderr.read()
    assert digest.hexdigest() == zero_hash(32 * MEG)


def test_b4_rekey_in_the_middle_of_an_upload(srv, box):
    """The same the other way."""
    with subprocess.Popen(
        ["head", "-c", str(32 * MEG), "/dev/zero"], stdout=subprocess.PIPE
    ) as zeros:
        done = srv.ssh(
            box, "sha256sum", ["-o", "RekeyLimit=4M"], stdin=zeros.stdout,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0].decode() == zero_hash(32 * MEG)


def test_b4_rekey_by_time(srv, box):
    """Connections that die at the first rekey by time."""
    done = srv.ssh(
        box, "for i in 1 2 3 4 5 6 7; do echo $i; sleep 1; done",
        ["-o", "RekeyLimit=default 2"], timeout=60,
    )
    assert (done.returncode, done.stdout) == (0, b"1\n2\n3\n4\n5\n6\n7\n")


# ---- B6 to B9: codes, stderr, stdin -------------------------------------


@pytest.mark.ordinary
def test_b6_codes_and_stderr_are_the_commands_own(srv, box):
    """Servers that turn every failure into 1 and add their own text."""
    for code in (0, 1, 2, 126, 127, 128, 200, 255):
        done = srv.ssh(box, f"exit {code}")
        assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
    done = srv.ssh(box, "nosuchcmd_zz")
    assert done.returncode == 127 and done.stdout == b""
    assert done.stderr.count(b"\n") == 1 and b"nosuchcmd_zz" in done.stderr
    assert done.stderr.endswith(b"not found\n"), done.stderr


def test_b7_codes_with_a_pty_and_of_a_shell(srv, box):
    """Gateways were misled by codes that are always 0 with a PTY."""
    assert srv.ssh(box, "exit 7", ["-tt"]).returncode == 7
    for text, code in ((b"exit 9\n", 9), (b"false\nexit\n", 1)):
        done = srv.ssh(f"{box}+n{code}", None, ["-tt"], input=text)
        assert done.returncode == code, done.stdout


@pytest.mark.ordinary
def test_b8_shell_without_pty_has_none(srv, box):
    """No PTY unless asked: no echo, no prompt, no carriage returns."""
    done = srv.ssh(
        box, None, ["-T"],
        input=b"tty\necho out\necho err >&2\nexit 4\n",
    )
    assert done.returncode == 4
    assert done.stdout == b"not a tty\nout\n"
    assert done.stderr == b"err\n"


def test_b9_eof_of_stdin_is_a_half_close(srv, box):
    """EOF that never arrives hangs; EOF taken as a close loses output."""
    done = srv.ssh(box, "wc -l", input=b"a\nb\n")
    assert (done.returncode, done.stdout.strip()) == (0, b"2")
    done = srv.ssh(box, "cat; sleep 1; echo after; exit 5", input=b"")
    assert (done.returncode, done.stdout) == (5, b"after\n")
    done = srv.ssh(box, "sleep 1; echo OUT", ["-n"])
    assert (done.returncode, done.stdout) == (0, b"OUT\n")
    with open("/dev/zero", "rb") as zero:
        done = srv.ssh(box, "exec 0<&-; sleep 1; echo x", stdin=zero)
    assert (done.returncode, done.stdout) == (0, b"x\n")


# ---- B11, B12: ends ------------------------------------------------------


@pytest.mark.parametrize("tty", [[], ["-tt"]], ids=["pipe", "pty"])
def test_b11_an_admin_kill_gives_a_status(srv, box, tty):
    """A channel closed without a status looks like success to many."""
    child = srv.spawn(box, "echo $$; exec sleep 600", tty)
    pid = int(child.stdout.readline())
    srv.berth_ok("kill", srv.session(box)["id"])
    child.wait(30)
    assert child.returncode not in (0, None)
    wait_for(lambda: not procs.is_alive(pid), 10, "the process gone")
    assert srv.row(box)["status"] in ("killed", "exited")


@pytest.mark.parametrize("tty", [[], ["-tt"]], ids=["pipe", "pty"])
@pytest.mark.parametrize(
    "name", ["HUP", "INT", "KILL", "TERM", "SEGV", "PIPE", "QUIT"]
)
def test_b12_death_by_signal(srv, box, name, tty):
    """Never 0, never a hang, and the store names the signal."""
    number = int(getattr(signal, f"SIG{name}"))
    done = srv.ssh(
        box,
        f'exec python3 -c "import os,signal; '
        f'signal.signal({number}, 0) if {number} != 9 else 0; '
        f'os.kill(os.getpid(), {number})"',
        tty,
    )
    assert done.returncode in (255, 128 + number)
    row = srv.row(box)
    assert row["status"] in ("killed", "exited")
    assert row["exit_signal"] == name and row["exit_code"] is None


def test_b12_exit_137_stays_137(srv, box):
    """A real code is not a signal."""
    assert srv.ssh(box, "exit 137").returncode == 137
    row = srv.row(box)
    assert (row["status"], row["exit_code"]) == ("exited", 137)
    assert not row["exit_signal"]


# ---- B14 to B19 ----------------------------------------------------------


def test_b14_window_changes_are_harmless(srv, box):
    """Resizes that end a session, or are ignored; absurd ones are clamped."""
    term = srv.term(
        box, command='trap "stty size" WINCH; echo go;'
        " for i in $(seq 40); do sleep .1; done; stty size; echo end",
    )
    term.expect(rb"go\r\n")
    sizes = [(1, 1), (0, 0), (500, 500), (65535, 65535), (0, 30), (90, 0)]
    for i in range(60):
        term.resize(*sizes[i % len(sizes)])
        time.sleep(0.02)  # the storm's own pace, not a condition
    term.resize(101, 37)
    term.expect(rb"37 101\r\nend\r\n", 60)
    assert term.wait() == 0


def test_b14_window_change_without_pty_is_ignored(srv, box):
    """There is nothing to change on a pipe."""

    async def talk():
        async with await connect(srv, box) as conn:
            proc = await conn.create_process("sleep 1; echo ok; exit 2")
            proc.channel.change_terminal_size(100, 40)
            done = await proc.wait()
            assert (done.exit_status, done.stdout) == (2, "ok\n")

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_b15_pipes_are_byte_exact_and_quiet(srv, box):
    """Log lines, banners or CRs in stdout break every protocol over it."""
    done = srv.ssh(box, r'printf "\000\001\r\n\377\376\033[2J"')
    assert (done.stdout, done.stderr) == (b"\0\1\r\n\xff\xfe\x1b[2J", b"")
    noise = os.urandom(3 * MEG)
    done = srv.ssh(box, "cat", input=noise, timeout=60)
    assert done.stdout == noise and done.stderr == b""
    assert srv.out(box, "echo SECRET_$((40+2))x") == "SECRET_42x\n"
    srv.ssh(box, "echo SECRET_$((40+3))x >&2")
    assert "SECRET_42x" not in srv.log() and "SECRET_43x" not in srv.log()


def test_b15_a_long_stream_is_byte_exact_and_counted(srv, box):
    """Past 1 MiB the channel reads the pipe by itself."""
    done = srv.ssh(
        box, "head -c 30000000 /dev/urandom | tee f; echo err >&2; exit 6",
        timeout=90)
    assert (done.returncode, done.stderr) == (6, b"err\n")
    assert len(done.stdout) == 30000000
    assert srv.row(box)["bytes_out"] == 30000004
    said = srv.out(box, "sha256sum f").split()[0]
    assert hashlib.sha256(done.stdout).hexdigest() == said


def test_b15_a_long_stream_ends_with_its_last_holder(srv, box):
    """As a short one does: the code is the leader's, the output is all."""
    done = srv.ssh(
        box, "(while kill -0 $$; do sleep 0.1; done 2>&-;"
        " head -c 3000000 /dev/zero; echo late) &"
        " head -c 8000000 /dev/zero; exit 4", timeout=60)
    assert done.returncode == 4
    assert len(done.stdout) == 11000005 and done.stdout.endswith(b"\0late\n")


def test_b15_git_clones_over_it(srv, box):
    """The protocol that hung when a server logged to stdout."""
    srv.out(
        box, "git init -q --bare r.git && git init -q w && cd w && git "
        "-c user.name=n -c user.email=e@x commit -q --allow-empty -m one "
        "&& git push -q ../r.git HEAD:refs/heads/main && git "
        "--git-dir=../r.git symbolic-ref HEAD refs/heads/main",
    )
    args = " ".join(srv.ssh_args(box)[:-3])
    done = run(
        ["git", "clone", "-q", f"{box}@127.0.0.1:r.git", srv.dir / "clone"],
        60, env={**os.environ, "GIT_SSH_COMMAND": args, "HOME": "/"},
    )
    assert done.returncode == 0, done.stderr
    log = run(["git", "-c", "safe.directory=*", "-C", srv.dir / "clone",
               "log", "--format=%s"])
    assert log.stdout == b"one\n"


def keeper_of(srv, box):
    leader = srv.session(box)["pid"]
    return procs.get(leader).ppid


def test_b16_stopped_reader_costs_bounded_memory(srv, box):
    """A client that reads nothing must not fill the server's memory."""
    child = srv.spawn(box, "yes")
    child.stdout.read(MEG)
    keeper = keeper_of(srv, box)
    mine = [p.pid for p in procs.descendants(srv.proc.pid)
            if p.comm.startswith("berth-")]
    assert keeper in mine

    def memory():
        return sum(map(procs.rss_kib, mine + [srv.proc.pid]))

    time.sleep(2)  # lets every window fill; the measured span follows
    before = memory()
    time.sleep(4)
    assert memory() - before < 16 * 1024
    start = time.monotonic()
    assert srv.out(f"{box}x", "echo other") == "other\n"
    assert time.monotonic() - start < 10
    assert child.stdout.read(8 * MEG) == b"y\n" * (4 * MEG)
    end(child)
    wait_for(lambda: not srv.sessions(box), 15, "yes ended")


def test_b19_refused_extras_do_not_break_the_session(srv, box):
    """X11, agent, foreign variables, forwards: refused, and all goes on."""
    agent = subprocess.Popen(
        ["ssh-agent", "-D", "-a", srv.dir / "agent"],
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_for((srv.dir / "agent").exists)
        done = srv.ssh(
            box,
            "echo ok $FOO $LD_PRELOAD ${SSH_AUTH_SOCK-none} ${DISPLAY-none}",
            ["-X", "-A", "-o", "SendEnv=*",
             "-o", "SetEnv=FOO=bar LD_PRELOAD=/tmp/x.so IFS=x"],
            env={**os.environ, "DISPLAY": ":99",
                 "SSH_AUTH_SOCK": str(srv.dir / "agent")},
        )
        assert (done.returncode, done.stdout) == (0, b"ok none none\n")
    finally:
        end(agent)
    done = srv.ssh(
        box, "echo ok",
        ["-R", "0:localhost:1", "-L", f"127.0.0.1:{free_port()}:localhost:1"],
    )
    assert (done.returncode, done.stdout) == (0, b"ok\n")


# ---- E14, F2: who must go ------------------------------------------------


def test_e14_no_zombies_no_orphans(srv, box):
    """Many short commands, and clients killed in the middle of stubborn
    ones: nothing is left, and the daemon's descriptors are back at base.
    """
    srv.out(box, "true")
    wait_for(lambda: not srv.sessions(box))
    base = procs.fd_count(srv.proc.pid)
    for _ in range(8):
        batch = [srv.spawn(box, "true") for _ in range(5)]
        assert [c.wait(60) for c in batch] == [0] * 5
    stubborn = [
        srv.spawn(box, f"trap '' HUP TERM; echo $$; {wait}; sleep 1000")
        for wait in ("sleep 1000", "cat", "sleep 1000 & wait") * 3
    ]
    pids = [int(c.stdout.readline()) for c in stubborn]
    end(*stubborn)
    wait_for(
        lambda: not any(procs.in_session(p) for p in pids), 30,
        "every process of the killed clients gone",
    )
    wait_for(lambda: not procs.zombies(srv.proc.pid), 15, "no zombies")
    wait_for(
        lambda: procs.fd_count(srv.proc.pid) <= base + 1, 15,
        f"descriptors back at {base}",
    )


@pytest.mark.parametrize("tty", [[], ["-tt"]], ids=["pipe", "pty"])
def test_f2_a_vanished_client_takes_its_command_along(srv, box, tty):
    """exec'd processes that outlive their client by accident."""
    child = srv.spawn(box, "echo $$; sleep 7777 | cat; true", tty)
    pid = int(child.stdout.readline())
    assert procs.in_session(pid)
    end(child)
    wait_for(lambda: not procs.in_session(pid), 15, "its processes gone")
    assert srv.row(box)["exited_ms"]


def test_f2_a_daemon_that_called_setsid_stays(srv, box):
    """Documented: only the session's own processes go with the client."""
    child = srv.spawn(
        box, "setsid -f sleep 7778 </dev/null >/dev/null 2>&1;"
        " echo $$; exec sleep 7777",
    )
    pid = int(child.stdout.readline())
    end(child)
    wait_for(lambda: not procs.in_session(pid), 15, "the command gone")
    daemons = [p for p in procs.all_procs() if "sleep 7778" in repr(p)]
    assert daemons
    procs.kill(daemons)


# ---- F6, F7, F9: nothing lost, nothing invented ---------------------------


def test_f6_background_holders_do_not_change_the_code(srv, box):
    """Without a PTY the end may wait for the pipes; the 7 and the output of
    the foreground part stay.
    """
    done = srv.ssh(box, "seq 1 5000; sleep 3 & exit 7")
    assert done.returncode == 7
    assert done.stdout.split()[-1] == b"5000"


def test_f7_a_slow_reader_loses_nothing(srv, box):
    """Output cut short, yet success reported."""
    for _ in range(3):
        child = srv.spawn(box, "seq 1 300000")
        last, total = b"", 0
        while chunk := os.read(child.stdout.fileno(), 65536):
            total += len(chunk)
            last = (last + chunk)[-64:]
            time.sleep(0.01)  # the slowness under test
        assert (child.wait(30), last.split()[-1]) == (0, b"300000")
        assert total == sum(len(str(i)) + 1 for i in range(1, 300001))


def test_f7_a_lost_keeper_is_never_success(srv, box):
    """Truncated and 0 must be impossible; stderr says why."""
    child = srv.spawn(box, "seq 1 100000000", stderr=subprocess.PIPE)
    child.stdout.read(MEG)
    os.kill(keeper_of(srv, box), signal.SIGKILL)
    out = threading.Thread(target=child.stdout.read, daemon=True)
    out.start()
    assert child.wait(30) not in (0, None)
    out.join(10)
    assert b"berth" in child.stderr.read()
    assert srv.row(box)["status"] == "lost"


def test_f9_codes_through_all_layers(srv, box):
    """What the process said, whatever lies between."""
    srv.out(box, "echo x > plain; chmod 644 plain")
    for command, code in (
        ("exit 5", 5), ("exit 137", 137), ("./missing", 127),
        ("./plain", 126),
    ):
        assert srv.ssh(box, command).returncode == code
        assert srv.ssh(box, command, ["-tt"]).returncode == code
    assert srv.ssh(box, "kill -KILL $$").returncode in (255, 137)


def test_kill_signal_overtakes_a_full_stdin(srv, box):
    """Control frames overtake data: KILL arrives though stdin is full."""

    async def talk():
        async with await connect(srv, box) as conn:
            proc = await conn.create_process(
                "echo up; exec sleep 600", encoding=None
            )
            await proc.stdout.readline()
            for _ in range(64):
                proc.stdin.write(bytes(65536))
            await asyncio.sleep(1)  # lets every window fill
            proc.send_signal("KILL")
            done = await proc.wait()
            assert done.exit_signal and done.exit_signal[0] == "KILL"

    asyncio.run(asyncio.wait_for(talk(), 60))
    assert srv.row(box)["exit_signal"] == "KILL"


def test_signals_reach_the_foreground(srv, box):
    """HUP INT QUIT TERM KILL USR1 USR2 as RFC 4254 6.9 has them."""

    async def talk():
        async with await connect(srv, box) as conn:
            for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
                proc = await conn.create_process(
                    f"trap 'echo got {name}; exit 5' {name}; echo up;"
                    " while :; do sleep .1; done"
                )
                await proc.stdout.readline()
                proc.send_signal(name)
                done = await proc.wait()
                assert (done.exit_status, done.stdout) == (5, f"got {name}\n")

    asyncio.run(asyncio.wait_for(talk(), 90))


def test_early_data_before_exec_is_kept(srv, box):
    """Data that a client sends at once must not be lost before the start."""
    for i in range(5):
        text = f"early {i}\n".encode()
        assert srv.ssh(box, "cat", input=text).stdout == text


def test_failure_helper_reports():
    """The harness itself: a condition that never holds is a failure."""
    with pytest.raises(Failure):
        wait_for(lambda: False, 0.1, "never")
