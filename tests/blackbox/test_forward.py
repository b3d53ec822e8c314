"""Forwarded ports: ssh -L, -D, -W, -R and ProxyJump with stock clients, who
may reach and offer what, and that nobody waits for anybody else's target.
"""

import asyncio
import hashlib
import os
import socket
import subprocess
import threading
import time

import asyncssh
import paramiko
import pytest

import ports
import procs
import raw
from berth import RELEASE, free_port, run, wait_for
from ports import Target, Tunnel, connect, is_dropped, local, read_all, \
    remote, serves, source_digest
from test_clients import plink

MEG = 1 << 20


@pytest.fixture
def target():
    made = []

    def make(talk=ports.echo, **kw):
        made.append(Target(talk, **kw))
        return made[-1]

    yield make
    for t in made:
        t.close()


def events(srv, box, event=None):
    rows = srv.sql(
        f"SELECT event, detail FROM audit WHERE sandbox = '{box}'"
        " AND event LIKE 'forward%' ORDER BY id"
    )
    return [r["detail"] for r in rows if event in (None, r["event"])]


def expect_event(srv, box, event, text):
    return wait_for(
        lambda: any(text in d for d in events(srv, box, event)), 15,
        f"{event} with {text!r} among {events(srv, box)}",
    )


def expect_events(srv, box, event, n):
    """So many and no more; rows come a moment later than what they tell."""
    wait_for(lambda: len(events(srv, box, event)) >= n, 15,
             f"{n} times {event}")
    found = events(srv, box, event)
    assert len(found) == n, found
    return found


def ssh_children(srv):
    return [p for p in procs.descendants(srv.proc.pid)
            if p.comm == "berth-sshd"]


# ---- out: -L, -D, -W ----------------------------------------------------------


@pytest.mark.ordinary
def test_local_forward_and_its_rows(srv, box, target):
    """The plain case, and what the audit trail says about it."""
    t = target()
    _, port = local(srv, box, f"localhost:{t.port}")
    with connect(port) as s:
        for _ in range(20):
            s.sendall(b"x")
            assert s.recv(1) == b"x"
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b""
    assert expect_events(srv, box, "forward", 1) == [
        f"to localhost:{t.port}"]
    expect_event(srv, box, "forward_end",
                 f"to localhost:{t.port}: 20 bytes in, 20 out")


def test_half_close_of_the_client(srv, box, target):
    """Protocols that answer when the question has ended."""
    t = target(ports.digest)
    _, port = local(srv, box, f"127.0.0.1:{t.port}")
    data = os.urandom(3 * MEG)
    with connect(port) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).decode() == hashlib.sha256(data).hexdigest()


def test_half_close_of_the_target(srv, box, target):
    """Who has said all may still be told something."""
    heard = []

    def talk(conn):
        conn.sendall(b"bye")
        conn.shutdown(socket.SHUT_WR)
        heard.append(read_all(conn))

    _, port = local(srv, box, f"127.0.0.1:{target(talk).port}")
    with connect(port) as s:
        assert read_all(s) == b"bye"
        s.sendall(b"a" * MEG)
        s.sendall(b"end")
    wait_for(lambda: heard, 20, "what came after")
    assert heard == [b"a" * MEG + b"end"]


def test_a_reset_goes_through(srv, box, target):
    """A target that resets must not look like one that is silent, and a
    client that vanishes not like one that waits.
    """
    gone = threading.Event()

    def talk(conn):
        if conn.recv(1) == b"r":
            conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                            b"\1\0\0\0\0\0\0\0")
            conn.close()
        else:
            conn.recv(1)
            gone.set()

    _, port = local(srv, box, f"127.0.0.1:{target(talk).port}")
    with connect(port) as s:
        s.sendall(b"r")
        assert is_dropped(s)
    with connect(port) as s:
        s.sendall(b"w")
        time.sleep(0.1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                     b"\1\0\0\0\0\0\0\0")
    assert gone.wait(20)


def test_unreachable_fails_that_channel_alone(srv, box, target):
    """Connection refused, while another goes on."""
    t = target()
    shut = free_port()
    other = free_port()
    tunnel, port = local(srv, box, f"localhost:{t.port}",
                         "-L", f"127.0.0.1:{other}:localhost:{shut}")
    with connect(port) as s:
        s.sendall(b"1")
        assert s.recv(1) == b"1"
        for _ in range(3):
            with connect(other) as bad:
                assert is_dropped(bad)
        s.sendall(b"2")
        assert s.recv(1) == b"2"
    tunnel.expect(rb"open failed")
    expect_event(srv, box, "forward_failed",
                 f"to localhost:{shut}: connect failed: Connection refused")
    assert serves(port)


def test_a_silent_target_holds_nobody_up(srv, box, target):
    """A full backlog answers nothing: that channel fails after ten seconds,
    and meanwhile everything else has its usual pace.
    """
    full = socket.create_server(("127.0.0.1", 0), backlog=0)
    silent = full.getsockname()[1]
    plugs = []
    for _ in range(4):
        s = socket.socket()
        s.setblocking(False)
        s.connect_ex(("127.0.0.1", silent))
        plugs.append(s)
    time.sleep(0.2)
    t = target()
    bad_port = free_port()
    _, port = local(srv, box, f"localhost:{t.port}",
                    "-L", f"127.0.0.1:{bad_port}:127.0.0.1:{silent}")
    start = time.monotonic()
    bad = connect(bad_port)
    for _ in range(5):
        assert serves(port)
        assert srv.out(f"{box}x", "echo other") == "other\n"
    assert is_dropped(bad, 30)
    assert 8 < time.monotonic() - start < 25
    expect_event(srv, box, "forward_failed", "Connection timed out")
    for s in (bad, full, *plugs):
        s.close()


def test_a_hundred_at_once(fresh, box, target):
    """A browser behind -D, and a script that forgot to close."""
    srv = fresh(server__max_channels="130")
    t = target()
    _, port = local(srv, box, f"localhost:{t.port}")
    base = procs.fd_count(srv.proc.pid)
    socks = [connect(port) for _ in range(100)]
    for i, s in enumerate(socks):
        s.sendall(b"%04d" % i * 1000)
    for i, s in enumerate(socks):
        s.shutdown(socket.SHUT_WR)
        assert read_all(s) == b"%04d" % i * 1000
        s.close()
    wait_for(lambda: len(events(srv, box, "forward_end")) == 100, 20,
             "100 rows of ends")
    assert procs.fd_count(srv.proc.pid) <= base
    assert serves(port)


def test_more_than_the_limit_are_refused(fresh, box, target):
    srv = fresh(server__max_channels="4")
    t = target()
    tunnel, port = local(srv, box, f"localhost:{t.port}")
    good = [connect(port) for _ in range(4)]
    for s in good:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
    with connect(port) as s:
        assert is_dropped(s)
    tunnel.expect(rb"open failed")
    for s in good:
        s.sendall(b"y")
        assert s.recv(1) == b"y"
        s.close()
    wait_for(lambda: serves(port), 15, "room again")


def test_socks_and_curl(srv, box, target):
    """-D by name and by address."""
    def http(conn):
        data = b""
        while b"\r\n\r\n" not in data:
            data += conn.recv(4096)
        conn.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello")

    t = target(http)
    proxy = free_port()
    Tunnel(srv, box, "-D", f"127.0.0.1:{proxy}")
    wait_for(lambda: ports.is_listening(proxy))
    for how in ("--socks5-hostname", "--socks5", "--socks4"):
        done = run(["curl", "-s", "--noproxy", "", how, f"127.0.0.1:{proxy}",
                    f"http://127.0.0.1:{t.port}/"])
        assert (done.returncode, done.stdout) == (0, b"hello"), (how, done)
    echo = target()
    with ports.socks(proxy, "localhost", echo.port) as s:
        s.sendall(b"hi")
        assert s.recv(2) == b"hi"
    assert ports.socks(proxy, "example.invalid", 80) is None
    expect_event(srv, box, "forward_refused",
                 "to example.invalid:80: forward.allow does not name it")


def test_stdio_forward(srv, box, target):
    """ssh -W, the way of ProxyJump."""
    t = target(ports.digest)
    data = os.urandom(MEG)
    done = srv.ssh(box, opts=["-W", f"localhost:{t.port}"], input=data)
    assert done.returncode == 0
    assert done.stdout.decode() == hashlib.sha256(data).hexdigest()


def test_proxy_jump_through_berth_to_berth(srv, box):
    """Both hops are the same server, each with a login of its own."""
    config = srv.dir / "jump.conf"
    config.write_text(f"""
Host *
    IdentityFile {srv.key}
    IdentitiesOnly yes
    IdentityAgent none
    BatchMode yes
    UserKnownHostsFile {srv.dir}/jump_hosts
    GlobalKnownHostsFile /dev/null
    StrictHostKeyChecking accept-new
    Port {srv.port}
Host hop
    HostName 127.0.0.1
    User {box}
Host inner
    HostName localhost
    User {box}x
    ProxyJump hop
""")
    done = run(["ssh", "-F", config, "inner",
                "echo $BERTH_SANDBOX; exit 3"])
    assert (done.returncode, done.stdout.decode()) == (3, f"{box}x\n"), done
    assert expect_events(srv, box, "forward", 1) == [
        f"to localhost:{srv.port}"]


# ---- in: -R ---------------------------------------------------------------------


@pytest.mark.ordinary
def test_remote_forward_of_any_port(srv, box, target):
    """-R 0: the port is told, the address is the loopback, and both half-closes
    pass; it ends with the connection.
    """
    t = target(ports.digest)
    tunnel, port = remote(srv, box, f"127.0.0.1:{t.port}")
    for _ in range(3):
        data = os.urandom(MEG)
        with connect(port) as s:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            assert read_all(s).decode() == hashlib.sha256(data).hexdigest()
    with socket.create_connection(("::1", port), 10) as s:
        s.shutdown(socket.SHUT_WR)
        assert len(read_all(s)) == 64
    assert expect_events(srv, box, "forward", 1) == [
        f"listen localhost:{port}"]
    tunnel.close()
    wait_for(lambda: not ports.is_listening(port), 15, "the listener gone")
    expect_event(srv, box, "forward_end",
                 f"listen localhost:{port}: 4 connections, 256 bytes in, "
                 f"{3 * MEG} out")


def test_remote_forward_is_forced_to_the_loopback(srv, box, target):
    """As with GatewayPorts=no: what is asked for the world is not given to
    it, and a port of somebody else is not shared.
    """
    t = target()
    port = free_port()
    Tunnel(srv, box, "-R", f"*:{port}:127.0.0.1:{t.port}")
    wait_for(lambda: serves(port), 20, "the forward")
    with open("/proc/net/tcp", encoding="ascii") as f:
        rows = [r.split()[1] for r in f.readlines()[1:]
                if r.split()[1].endswith(f":{port:04X}")
                and r.split()[3] == "0A"]
    assert rows == [f"0100007F:{port:04X}"]
    done = srv.ssh(f"{box}x", "echo no", [
        "-o", "ExitOnForwardFailure=yes",
        "-R", f"{port}:127.0.0.1:{t.port}"])
    assert done.returncode == 255
    expect_event(srv, f"{box}x", "forward_failed", "Address already in use")
    done = srv.ssh(f"{box}x", "echo no", [
        "-o", "ExitOnForwardFailure=yes", "-R", f"80:127.0.0.1:{t.port}"])
    assert done.returncode == 255
    expect_event(srv, f"{box}x", "forward_failed", "Permission denied")


def test_remote_forward_ends_when_it_is_cancelled(srv, box, target):
    """ssh -O cancel; and again, and the same port once more."""
    t = target()
    port = free_port()
    mux = ["-o", f"ControlPath={srv.dir}/mux-{box}"]
    spec = ["-R", f"{port}:127.0.0.1:{t.port}"]
    Tunnel(srv, box, "-M", *mux)
    wait_for(lambda: (srv.dir / f"mux-{box}").exists())
    for _ in range(3):
        srv.ssh(box, opts=[*mux, "-O", "forward", *spec]).check_returncode()
        assert serves(port)
        srv.ssh(box, opts=[*mux, "-O", "cancel", *spec]).check_returncode()
        wait_for(lambda: not ports.is_open(port), 15, "cancelled")
    expect_events(srv, box, "forward_end", 3)


def test_remote_target_that_is_shut(srv, box):
    """Who connects in the sandbox hears that nobody is there, and the forward
    stays.
    """
    _, port = remote(srv, box, f"127.0.0.1:{free_port()}")
    for _ in range(3):
        with connect(port) as s:
            assert is_dropped(s)
    assert ports.is_open(port)


def test_listeners_have_a_limit(srv, box):
    mux = ["-o", f"ControlPath={srv.dir}/mux-{box}"]
    Tunnel(srv, box, "-M", *mux)
    wait_for(lambda: (srv.dir / f"mux-{box}").exists())
    codes = [
        srv.ssh(box, opts=[*mux, "-O", "forward", "-R",
                           f"{free_port()}:127.0.0.1:1"]).returncode
        for _ in range(33)
    ]
    assert codes == [0] * 32 + [255]


# ---- bulk ---------------------------------------------------------------------------


RELEASE_ONLY = pytest.mark.skipif(
    not (RELEASE / "berthd").exists(),
    reason="explained: no release build here",
)


@RELEASE_ONLY
@pytest.mark.timeout(300)
@pytest.mark.parametrize("rekey", ["default", "20M"])
def test_b4_300_megabytes_both_ways(fresh, box, target, rekey):
    """Every byte arrives, also when keys are changed in the middle, and the
    confined process of a release makes no call that it may not make.
    """
    srv = fresh(build=RELEASE)
    size = 300 * MEG
    up, down = target(ports.digest), target(ports.source(size))
    port_up = free_port()
    _, port = local(srv, box, f"localhost:{down.port}",
                    "-L", f"127.0.0.1:{port_up}:localhost:{up.port}",
                    "-o", f"RekeyLimit={rekey}")
    got = hashlib.sha256()
    answer = []

    def send():
        with connect(port_up, 120) as s:
            for i in range(size >> 16):
                s.sendall(ports.chunk(i))
            s.shutdown(socket.SHUT_WR)
            answer.append(read_all(s, 120).decode())

    sender = threading.Thread(target=send)
    sender.start()
    with connect(port, 120) as s:
        while data := s.recv(MEG):
            got.update(data)
    sender.join(120)
    assert got.hexdigest() == source_digest(size)
    assert answer == [source_digest(size)]
    assert "sshd_forbidden" not in srv.log()


@RELEASE_ONLY
def test_b16_nobody_reads(fresh, box, target):
    """Back-pressure to both sides: memory stays where it is, and others on
    the same connection go on. A sanitizer keeps freed memory for a while, so
    this looks at a release.
    """
    srv = fresh(build=RELEASE)
    hold = threading.Event()
    stopped = target(lambda conn: hold.wait(100))

    def flood(conn):
        while not hold.is_set():
            conn.sendall(b"f" * 65536)

    flooding = target(flood)
    t = target()
    p1, p2 = free_port(), free_port()
    tunnel, port = local(
        srv, box, f"localhost:{t.port}",
        "-L", f"127.0.0.1:{p1}:localhost:{stopped.port}",
        "-L", f"127.0.0.1:{p2}:localhost:{flooding.port}")
    assert serves(port)
    child = ssh_children(srv)[-1]
    before = procs.rss_kib(child.pid)
    with connect(p1) as a, connect(p2) as b:
        b.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sent = ports.quiet(a, 2)
        assert sent < 64 * MEG
        time.sleep(1)
        assert procs.rss_kib(child.pid) - before < 8 * 1024
        start = time.monotonic()
        assert serves(port)
        assert time.monotonic() - start < 5
        used = procs.get(child.pid).cpu_s
        time.sleep(1)
        assert procs.get(child.pid).cpu_s - used < 0.3, "it spins"
    hold.set()
    tunnel.close()


def test_a_killed_client_leaves_nothing(srv, box, target):
    """kill -9 with forwards open both ways: targets hear it, descriptors are
    back, listeners are gone.
    """
    over = []

    def talk(conn):
        while conn.recv(65536):
            pass
        over.append(1)

    t = target(talk)
    srv.out(box, "true")
    wait_for(lambda: not ssh_children(srv), 20, "quiet")
    base = procs.fd_count(srv.proc.pid)
    tunnel, port = local(srv, box, f"localhost:{t.port}",
                         "-R", f"0:127.0.0.1:{t.port}")
    back = int(tunnel.expect(rb"Allocated port (\d+)").group(1))
    socks = [connect(port) for _ in range(5)] + [connect(back)]
    for s in socks:
        s.sendall(b"x")
    wait_for(lambda: t.count == 6, 20, "six connections")
    tunnel.close()
    wait_for(lambda: len(over) == 6, 20, "the targets heard of it")
    wait_for(lambda: not ssh_children(srv), 20, "its process gone")
    wait_for(lambda: procs.fd_count(srv.proc.pid) <= base, 15, "descriptors")
    assert not ports.is_open(back)
    for s in socks:
        s.close()
    expect_events(srv, box, "forward_end", 6)  # five, and a listener


# ---- who may ---------------------------------------------------------------------------


REFUSED = {
    "viewer": ('role="viewer"', "may only watch"),
    "restrict": ("restrict", "may not forward"),
    "no-port-forwarding": ("no-port-forwarding", "may not forward"),
    "permitopen": ('permitopen="localhost:1"', "permitopen"),
    "permitopen-glob": ('permitopen="local*:*"', "permitopen"),
}


@pytest.mark.parametrize("story", REFUSED)
def test_keys_that_may_not_reach_it(srv, box, target, story):
    options, why = REFUSED[story]
    t = target()
    key = srv.add_key(box, options)
    done = srv.ssh(box, opts=["-W", f"localhost:{t.port}"], key=key)
    assert done.returncode == 255 and b"open failed" in done.stderr
    expect_event(srv, box, "forward_refused", why)
    assert t.count == 0
    assert events(srv, box, "forward") == []


LISTEN_REFUSED = {
    "viewer": ('role="viewer"', "may only watch"),
    "restrict": ("restrict", "may not forward"),
    "permitlisten": ('permitlisten="localhost:1"', "permitlisten"),
}


@pytest.mark.parametrize("story", LISTEN_REFUSED)
def test_keys_that_may_not_listen(srv, box, story):
    options, why = LISTEN_REFUSED[story]
    key = srv.add_key(f"{box}r", options)
    tunnel = Tunnel(srv, box, "-R", f"{free_port()}:localhost:1", key=key)
    tunnel.expect(rb"remote port forwarding failed")
    expect_event(srv, box, "forward_refused", why)


ALLOWED = {
    "none": "",
    "restrict,port-forwarding": "restrict,port-forwarding",
    "permitopen": 'permitopen="localhost:{port}",permitopen="other:1"',
    "permitopen-port": 'permitopen="localhost:*"',
    "command": 'command="echo forced"',
}


@pytest.mark.parametrize("story", ALLOWED)
def test_keys_that_may(srv, box, target, story):
    t = target()
    key = srv.add_key(box, ALLOWED[story].format(port=t.port))
    done = srv.ssh(box, opts=["-W", f"localhost:{t.port}"], key=key,
                   input=b"hello")
    assert (done.returncode, done.stdout) == (0, b"hello"), done


def test_permitlisten_names_what_may_be_offered(srv, box, target):
    t = target()
    port = free_port()
    key = srv.add_key(
        f"{box}p", f'permitlisten="{port}",permitlisten="local*:{free_port()}"')
    Tunnel(srv, box, "-R", f"{port}:127.0.0.1:{t.port}", key=key)
    wait_for(lambda: serves(port), 20, "the forward")


def test_forward_allow_decides(fresh, box, target):
    """Only what is named, by name and by the address behind a name; none is
    none.
    """
    t, other = target(), target()
    srv = fresh(
        forward__allow=f"*:{t.port},!127.0.0.1:{other.port},*:{other.port}",
        forward__listen="none")
    for host in ("127.0.0.1", "localhost", "127.1", "LOCALHOST"):
        done = srv.ssh(box, opts=["-W", f"{host}:{t.port}"], input=b"x")
        assert done.stdout == b"x", (host, done)
        done = srv.ssh(box, opts=["-W", f"{host}:{other.port}"], input=b"x")
        assert (done.returncode, done.stdout) == (255, b""), host
    expect_events(srv, box, "forward", 4)
    # The others connected before their address was known, and said nothing.
    expect_events(srv, box, "forward_refused", 4)
    done = srv.ssh(box, opts=["-W", f"no-such-host.invalid:{t.port}"])
    assert done.returncode == 255
    expect_event(srv, box, "forward_failed", "to no-such-host.invalid")
    tunnel = Tunnel(srv, box, "-R", f"{free_port()}:localhost:1")
    tunnel.expect(rb"remote port forwarding failed")
    expect_event(srv, box, "forward_refused", "forward.listen")


def test_forward_listen_may_open_more(fresh, box, target):
    """An admin who says so gets what GatewayPorts=clientspecified is."""
    port = free_port()
    t = target()
    srv = fresh(forward__listen=f"*:{port}")
    Tunnel(srv, box, "-R", f"*:{port}:127.0.0.1:{t.port}")
    wait_for(lambda: serves(port), 20, "the forward")
    with open("/proc/net/tcp", encoding="ascii") as f:
        assert f"00000000:{port:04X} 00000000:0000 0A" in f.read()


def test_many_refusals_do_not_fill_the_store(srv, box):
    """Whoever asks for the forbidden all day leaves a hundred rows."""
    key = srv.add_key(f"{box}q", 'permitopen="localhost:1"')
    t = raw_client(srv, box, key)
    for _ in range(130):
        with pytest.raises(paramiko.ChannelException):
            t.open_channel("direct-tcpip", ("localhost", 2), ("", 0))
    t.close()
    rows = events(srv, box, "forward_refused")
    assert len(rows) == 100 and "not listed" in rows[-1]


def test_unix_sockets_are_refused_cleanly(srv, box, target):
    """What the library cannot do must not break what it can."""
    t = target()
    path = srv.public / "sock"
    tunnel, port = local(srv, box, f"localhost:{t.port}",
                         "-L", f"{srv.dir}/in.sock:{path}",
                         "-R", f"{path}:localhost:1",
                         "-R", f"/{path}2:/tmp/x")
    tunnel.expect(rb"remote port forwarding failed")
    with socket.socket(socket.AF_UNIX) as s:
        wait_for((srv.dir / "in.sock").exists)
        s.connect(str(srv.dir / "in.sock"))
        assert is_dropped(s)
    assert serves(port)


# ---- other clients ------------------------------------------------------------------------


def raw_client(srv, box, key=None):
    t = paramiko.Transport(("127.0.0.1", srv.port))
    t.connect(username=box, pkey=paramiko.Ed25519Key.from_private_key_file(
        str(key or srv.key)))
    return t


def test_plink(srv, box, target):
    """Its windows are huge and measured by requests that nobody knows."""
    t = target(ports.digest)
    port = free_port()
    os.environ["HOME"] = str(srv.dir)
    args = [str(a) for a in plink(
        srv, box, "-N", "-L", f"127.0.0.1:{port}:localhost:{t.port}")]
    child = subprocess.Popen(
        args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    wait_for(lambda: ports.is_listening(port), 30, "plink listens")
    data = os.urandom(20 * MEG)
    with connect(port) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        assert read_all(s).decode() == hashlib.sha256(data).hexdigest()
    child.kill()
    child.wait(10)


def test_paramiko(srv, box, target):
    """A channel that is closed at once after its last byte: that byte counts.
    """
    heard = []
    t = target(lambda conn: heard.append(read_all(conn)))
    client = raw_client(srv, box)
    for i in range(10):
        chan = client.open_channel(
            "direct-tcpip", ("localhost", t.port), ("127.0.0.1", 1))
        chan.sendall(b"%d" % i * 200_000)
        chan.close()
    wait_for(lambda: len(heard) == 10, 20, "ten connections")
    assert sorted(map(len, heard)) == [200_000] * 10
    port = client.request_port_forward("", 0)
    with connect(port) as s:
        chan = client.accept(20)
        s.sendall(b"in")
        assert chan.recv(2) == b"in"
        chan.sendall(b"out")
        assert s.recv(3) == b"out"
        chan.shutdown_write()
        assert s.recv(1) == b""
        chan.close()
    client.cancel_port_forward("", port)
    assert not ports.is_open(port)
    client.close()


def test_asyncssh(srv, box, target):
    t = target()

    async def talk():
        async with asyncssh.connect(
            "127.0.0.1", srv.port, username=box, known_hosts=None,
            client_keys=[str(srv.key)], config=None, agent_path=None,
        ) as conn:
            reader, writer = await conn.open_connection("localhost", t.port)
            writer.write(b"hello")
            writer.write_eof()
            assert await reader.read() == b"hello"
            listener = await conn.forward_remote_port(
                "localhost", 0, "127.0.0.1", t.port)
            port = listener.get_port()
            loop = asyncio.get_running_loop()
            assert await loop.run_in_executor(None, serves, port)
            listener.close()
            await listener.wait_closed()
            assert not await loop.run_in_executor(None, ports.is_open, port)

    asyncio.run(asyncio.wait_for(talk(), 60))


# ---- other lives ------------------------------------------------------------------------------


def test_an_upgrade_keeps_what_is_open(fresh, box, target):
    """Open connections go on, the listener is there and accepts, new ones can
    be made and permissions are what they were.
    """
    srv = fresh(start=False)
    srv.install()
    srv.start()
    t = target()
    key = srv.add_key(
        box, f'permitopen="localhost:{t.port}",permitlisten="localhost:*"')
    tunnel, port = local(srv, box, f"localhost:{t.port}",
                         "-L", f"127.0.0.1:{free_port()}:localhost:1",
                         "-R", f"0:127.0.0.1:{t.port}", key=key)
    back = int(tunnel.expect(rb"Allocated port (\d+)").group(1))
    with connect(port) as a, connect(back) as b:
        for round_ in range(3):
            for s in (a, b):
                s.sendall(b"%d" % round_)
                assert s.recv(1) == b"%d" % round_
            if round_ == 0:
                srv.berth_ok("upgrade", timeout=60)
            if round_ == 1:
                srv.install("9.9.9")
                srv.berth_ok("upgrade", timeout=60)
        assert serves(port) and serves(back)
    done = srv.ssh(box, opts=["-W", "localhost:1"], key=key)
    assert done.returncode == 255
    tunnel.close()
    wait_for(lambda: not ports.is_listening(back), 15,
             "the listener gone")
    expect_event(srv, box, "forward_end",
                 f"listen localhost:{back}: 2 connections")
    ends = events(srv, box, "forward_end")
    assert f"to localhost:{t.port}: 3 bytes in, 3 out" in ends


def test_berthd_dies(fresh, box, target):
    """What is open goes on without it; listeners are gone, and what is new is
    refused on that connection.
    """
    srv = fresh(session__on_shutdown="keep")
    t = target()
    tunnel, port = local(srv, box, f"localhost:{t.port}",
                         "-R", f"0:127.0.0.1:{t.port}")
    back = int(tunnel.expect(rb"Allocated port (\d+)").group(1))
    with connect(port) as s, connect(back) as b:
        for c in (s, b):
            c.sendall(b"1")
            assert c.recv(1) == b"1"
        srv.kill()
        wait_for(lambda: not ports.is_listening(back), 15,
             "the listener gone")
        with connect(port) as new:
            assert is_dropped(new)
        for c in (s, b):
            c.sendall(b"2")
            assert c.recv(1) == b"2"
        srv.start()
        for c in (s, b):
            c.sendall(b"3")
            assert c.recv(1) == b"3"
    assert tunnel.child.wait(30) is not None


def test_garbage_for_forwards(srv, box):
    """Hosts and ports that are none; the connection stays."""
    t = raw_client(srv, box)
    for host, port in (("", 80), ("localhost", 0), ("a b", 80),
                       ("x" * 300, 80), ("localhost", 70000),
                       ("\x1b[2J", 80), ("%lo", 80), ("fe80::1%lo", 80),
                       ("[::1]", 80)):
        with pytest.raises(paramiko.ChannelException):
            t.open_channel("direct-tcpip", (host, port), ("", 0))
    for address in ("a b", "x" * 300, "\n"):
        with pytest.raises(paramiko.SSHException):
            t.request_port_forward(address, 0)
    for m in (raw.message(80, "tcpip-forward", False, "", 0),
              raw.message(80, "cancel-tcpip-forward", False, "", 9)):
        t._send_message(m)
    chan = t.open_session()
    chan.exec_command("echo still")
    assert chan.recv(100) == b"still\n"
    t.close()
    assert "violation" not in srv.log()[srv.mark:]
