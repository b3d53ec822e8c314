"""The main job with every stock client: OpenSSH, dbclient, plink, paramiko,
asyncssh. Each gets a code, both streams, a terminal, and the shared shell.
"""

import asyncio
import os
import shutil
import time

import asyncssh
import paramiko
import pytest

import raw
from berth import Term, run, wait_for


def converted(srv, name, *command):
    path = srv.dir / name
    if not path.exists():
        run([*command, "-o", path] if command[0] == "puttygen" else
            [*command, path]).check_returncode()
    return path


def dbclient(srv, user, *opts):
    key = converted(
        srv, "key.dropbear", "dropbearconvert", "openssh", "dropbear",
        srv.key,
    )
    return ["dbclient", "-y", "-y", "-i", key, "-p", srv.port, *opts,
            f"{user}@127.0.0.1"]


def plink(srv, user, *opts):
    key = converted(
        srv, "key.ppk", "puttygen", srv.key, "-O", "private",
        "--new-passphrase", "/dev/null",
    )
    public = (srv.state / "ssh_host_ed25519_key.pub").read_text()
    path = srv.dir / "host.pub"
    path.write_text(public)
    print_of = run(["ssh-keygen", "-l", "-f", path]).stdout.split()[1]
    return ["plink", "-ssh", "-batch", "-noagent", "-hostkey",
            print_of.decode(), "-i", key, "-P", srv.port, *opts,
            f"{user}@127.0.0.1"]


@pytest.fixture(params=["ssh", "dbclient", "plink"])
def client(request, srv):
    if request.param == "ssh":
        return lambda user, *opts: srv.ssh_args(user, *opts)
    assert shutil.which(request.param), f"{request.param} is not installed"
    build = {"dbclient": dbclient, "plink": plink}[request.param]
    env_home = {"HOME": str(srv.dir)}
    os.environ.update(env_home)
    return lambda user, *opts: [str(x) for x in build(srv, user, *opts)]


def test_exec_streams_and_code(srv, box, client):
    """stdout, stderr, stdin and the code, each where it belongs."""
    done = run(
        [*client(box), "cat; echo err >&2; exit 37"], 60, input=b"in\0put\n"
    )
    assert done.returncode == 37 and done.stdout == b"in\0put\n"
    assert b"err\n" in done.stderr.replace(b"\r\n", b"\n")


def test_bulk_both_ways(srv, box, client):
    """Four MiB through a cat are the same four MiB."""
    noise = os.urandom(4 << 20)
    done = run([*client(box, "-T"), "cat"], 90, input=noise)
    assert done.returncode == 0 and done.stdout == noise


def test_shared_shell_with_a_terminal(srv, box, client):
    """The client's own terminal, on the shell that all share."""
    first = srv.term(box).ready()
    term = Term(client(box, "-t"), 100, 30)
    srv.clients.append(term)
    time.sleep(1.1)  # the size is that of who typed, when the other rests
    term.ready()
    term.send("echo size $(stty size)\r")
    term.expect(rb"size 30 100")
    first.expect(rb"size 30 100")  # a picture, clipped
    term.send("exit 14\r")
    assert (term.wait(), first.wait()) == (14, 14)


def test_paramiko(srv, box):
    """Exec, a shared terminal with resize, a signal's end."""
    t = raw.transport(srv)
    assert raw.login(t, box, srv.key) == []
    channel = t.open_session(timeout=60)
    channel.exec_command("cat; echo err >&2; exit 41")
    channel.sendall(b"data")
    channel.shutdown_write()
    assert channel.makefile().read() == b"data"
    assert channel.makefile_stderr().read() == b"err\n"
    assert channel.recv_exit_status() == 41
    shell = t.open_session(timeout=60)
    shell.get_pty("xterm", 97, 33)
    shell.invoke_shell()
    shell.settimeout(30)
    shell.sendall(b"stty size\n")
    assert read_to(shell, b"33 97\r\n")
    shell.resize_pty(98, 34)
    shell.sendall(b"stty size; exit 3\n")
    assert read_to(shell, b"34 98\r\n")
    assert shell.recv_exit_status() == 3
    t.close()


def read_to(channel, text):
    seen = b""
    while text not in seen:
        chunk = channel.recv(65536)
        if not chunk:
            return False
        seen += chunk
    return True


def test_asyncssh(srv, box):
    """Many channels at once, exit signals, a break that hurts nobody."""

    async def talk():
        async with asyncssh.connect(
            "127.0.0.1", srv.port, username=box, known_hosts=None,
            client_keys=[str(srv.key)], config=None, agent_path=None,
        ) as conn:
            runs = await asyncio.gather(
                *(conn.run(f"echo {i}; exit {i}") for i in range(8))
            )
            assert [(r.stdout, r.exit_status) for r in runs] == [
                (f"{i}\n", i) for i in range(8)
            ]
            done = await conn.run("kill -TERM $$")
            assert done.exit_signal and done.exit_signal[0] == "TERM"
            proc = await conn.create_process(
                "stty size; sleep 1", term_type="xterm", term_size=(66, 22)
            )
            assert (await proc.stdout.readline()).strip() == "22 66"
            proc.send_break(100)
            await asyncio.wait_for(proc.wait(), 30)

    asyncio.run(asyncio.wait_for(talk(), 90))


def test_break_reaches_the_terminal(srv, box):
    """RFC 4335: as the tty's own settings say; with brkint an interrupt."""

    async def talk():
        async with asyncssh.connect(
            "127.0.0.1", srv.port, username=box, known_hosts=None,
            client_keys=[str(srv.key)], config=None, agent_path=None,
        ) as conn:
            proc = await conn.create_process(
                "stty brkint -ignbrk; trap 'echo broken; exit 7' INT;"
                " echo up; while :; do sleep .1; done",
                term_type="xterm", term_size=(80, 24),
            )
            assert (await proc.stdout.readline()).strip() == "up"
            proc.send_break(100)
            done = await asyncio.wait_for(proc.wait(), 30)
            assert "broken" in done.stdout and done.exit_status == 7

    asyncio.run(asyncio.wait_for(talk(), 60))


def test_an_unknown_subsystem_is_refused(srv, box):
    """A failure of that request, not the end of the connection."""
    t = raw.transport(srv)
    assert raw.login(t, box, srv.key) == []
    channel = t.open_session(timeout=60)
    with pytest.raises(paramiko.SSHException):
        channel.invoke_subsystem("nosuch")
    again = t.open_session(timeout=60)
    again.exec_command("exit 5")
    assert again.recv_exit_status() == 5
    with pytest.raises(paramiko.ChannelException):
        t.open_channel("direct-tcpip", ("127.0.0.1", 1), ("127.0.0.1", 2))
    t.close()
    wait_for(lambda: not srv.sessions(box), 20, "ended")
