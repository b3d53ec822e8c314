"""Ports and files of a sandbox that separates: forwards end in its network and
nowhere else, sftp ends in its tree and nowhere else.
"""

import os
import socket
import time

import pytest

import procs
from berth import free_port, wait_for
from files import Raw, noise, sftp, sftp_ok, sha, transfers
from ports import Target, Tunnel, connect, echo, is_dropped, local, \
    read_all, serves
from test_forward import events, expect_event

MEG = 1 << 20

SERVER = {
    "access__default_template": "native",
    "template silent__network": "none",
    "template hostnet__network": "host",
    "forward__allow": "*:*",
    "forward__listen": "localhost:*",
}

SERVE = """
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
s = socket.socket(family)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.bind((sys.argv[1], int(sys.argv[2])))
s.listen(100)
print("up", flush=True)
def talk(c):
    while data := c.recv(1 << 18):
        c.sendall(data)
    c.close()
while True:
    threading.Thread(target=talk, args=(s.accept()[0],), daemon=True).start()
"""

ASK = ("import socket,sys; s=socket.create_connection(('127.0.0.1',"
       "int(sys.argv[1])),5); s.sendall(b'from inside'); "
       "s.shutdown(1); print(s.recv(99).decode())")


@pytest.fixture
def target():
    t = Target(echo)
    yield t
    t.close()


def serve(srv, box, address="127.0.0.1", port=8080):
    """An echo server inside."""
    srv.out(box, f"cat >serve.py <<'E'\n{SERVE}\nE")
    child = srv.spawn(box, f"exec python3 serve.py {address} {port}")
    assert child.stdout.readline() == b"up\n"
    return child


def offer(srv, box, port, target, key=None):
    """ssh -R of a port inside that is known beforehand."""
    return Tunnel(srv, box, "-R", f"{port}:localhost:{target}", key=key)


def echoes(port, data=b"there and back"):
    with connect(port) as s:
        s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        return read_all(s) == data


# ---- out -------------------------------------------------------------------


@pytest.mark.ordinary
def test_local_forward_ends_inside(srv, box):
    """One port number, three networks: the host's and two sandboxes'."""
    serve(srv, box)
    _, port = local(srv, box, "localhost:8080")
    for _ in range(20):
        assert echoes(port)
    assert echoes(port, os.urandom(4 * MEG))
    _, other = local(srv, f"{box}-other", "localhost:8080")
    with connect(other) as s:
        assert is_dropped(s)
    assert not serves(8080)
    expect_event(srv, f"{box}-other", "forward_failed", "Connection refused")


def test_the_hosts_servers_are_not_reached(srv, box, target):
    """Neither by a forward to its loopback nor by any address of it."""
    for host in ("localhost", "127.0.0.1", "[::1]"):
        _, port = local(srv, box, f"{host}:{target.port}")
        with connect(port) as s:
            assert is_dropped(s)
    _, port = local(srv, box, "192.0.2.1:80")
    with connect(port) as s:
        assert is_dropped(s)
    expect_event(srv, box, "forward_failed", "Network is unreachable")
    assert target.count == 0


def test_v6_and_names(srv, box):
    serve(srv, box, "::1", 8081)
    for host in ("[::1]", "localhost"):
        _, port = local(srv, box, f"{host}:8081")
        assert echoes(port)
    _, port = local(srv, box, "example.invalid:80")
    with connect(port) as s:
        assert is_dropped(s)
    expect_event(srv, box, "forward_failed", "only localhost is a name")


def test_a_forward_makes_the_sandbox_and_waits_for_it(srv, box):
    """First use of the name: nothing listens, but it is there now."""
    _, port = local(srv, box, "localhost:8080")
    with connect(port) as s:
        assert is_dropped(s)
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    assert [r["state"] for r in rows] == ["running"]


def test_networks_of_templates(srv, box, target):
    for name, template in ((f"{box}-h", "hostnet"), (f"{box}-n", "silent")):
        srv.berth_ok("sandbox", "create", "--template", template, name)
    _, port = local(srv, f"{box}-h", f"localhost:{target.port}")
    assert echoes(port)
    _, port = local(srv, f"{box}-n", f"localhost:{target.port}")
    with connect(port) as s:
        assert is_dropped(s)
    expect_event(srv, f"{box}-n", "forward_failed", "connect failed")


def test_a_hundred_at_once(srv, box):
    serve(srv, box)
    _, port = local(srv, box, "localhost:8080")
    open_ones = [connect(port) for _ in range(50)]
    for i, s in enumerate(open_ones):
        s.sendall(b"%d" % i)
    for i, s in enumerate(open_ones):
        assert s.recv(99) == b"%d" % i
        s.close()
    wait_for(lambda: len(events(srv, box, "forward_end")) == 50, 20)


def test_sockets_do_not_keep_a_removed_sandbox(srv, box):
    """Its processes end at once, its connections with them."""
    serve(srv, box)
    _, port = local(srv, box, "localhost:8080")
    with connect(port) as s:
        s.sendall(b"x")
        assert s.recv(1) == b"x"
        begin = time.monotonic()
        srv.berth_ok("sandbox", "rm", box)
        assert read_all(s) == b""
        assert time.monotonic() - begin < 5


def test_a_listener_goes_with_its_sandbox(srv, box, target):
    """Its network ends; the connection of who offered the port goes on."""
    port = free_port()
    tunnel = offer(srv, box, port, target.port)
    expect_event(srv, box, "forward", f"listen localhost:{port}")
    srv.berth_ok("sandbox", "rm", box)
    expect_event(srv, box, "forward_end", "its sandbox has ended")
    assert tunnel.child.poll() is None
    done = srv.ssh(box, f'python3 -c "{ASK}" {port}')
    assert b"refused" in done.stderr and target.count == 0
    offer(srv, box, port, target.port)
    wait_for(lambda: len(events(srv, box, "forward")) == 2)
    assert srv.out(box, f'python3 -c "{ASK}" {port}') == "from inside\n"


# ---- in --------------------------------------------------------------------


@pytest.mark.ordinary
def test_remote_forward_listens_inside(srv, box, target):
    port = free_port()
    offer(srv, box, port, target.port)
    expect_event(srv, box, "forward", f"listen localhost:{port}")
    assert not serves(port), "it listens on the host"
    for _ in range(5):
        assert srv.out(box, f'python3 -c "{ASK}" {port}') == "from inside\n"
    other = srv.ssh(f"{box}-other", f'python3 -c "{ASK}" {port}')
    assert b"refused" in other.stderr
    assert target.count == 5


def test_the_same_port_in_every_sandbox(srv, box, target):
    """A port is a sandbox's own: two may have it, one not twice."""
    port = free_port()
    for name in (f"{box}-a", f"{box}-b"):
        offer(srv, name, port, target.port)
        expect_event(srv, name, "forward", f"listen localhost:{port}")
        assert srv.out(name, f'python3 -c "{ASK}" {port}') == "from inside\n"
    again = offer(srv, f"{box}-a", port, target.port)
    again.expect(rb"remote port forwarding failed")
    expect_event(srv, f"{box}-a", "forward_failed", "Address already in use")


def test_low_ports_stay_closed(srv, box, target):
    offer(srv, box, 81, target.port)
    expect_event(srv, box, "forward_failed", "Permission denied")


def test_a_viewer_gets_neither(srv, box, target):
    """Who may only watch forwards nothing and moves no file."""
    serve(srv, box)
    key = srv.add_key(f"v{box}", 'role="viewer"')
    _, port = local(srv, box, "localhost:8080", key=key)
    with connect(port) as s:
        assert is_dropped(s)
    listen = free_port()
    offer(srv, box, listen, target.port, key=key)
    wait_for(lambda: len(events(srv, box, "forward_refused")) == 2, 20)
    ask = srv.ssh(box, f'python3 -c "{ASK}" {listen}')
    assert b"refused" in ask.stderr
    done = sftp(srv, box, "ls\n", key=key)
    assert done.returncode != 0
    assert target.count == 0


# ---- files -----------------------------------------------------------------


@pytest.mark.ordinary
def test_sftp_is_at_home_inside(srv, box, tmp_path):
    """/workspace, both ways, and what is written down about it."""
    want = noise(tmp_path / "f", 5 * MEG + 3)
    text = sftp_ok(
        srv, box,
        f"pwd\nput {tmp_path}/f d\nget d {tmp_path}/g\nls -l /workspace\n")
    assert "Remote working directory: /workspace\n" in text
    assert sha(tmp_path / "g") == want
    assert sha(srv.boxes / box / "d") == want
    assert srv.out(box, "sha256sum </workspace/d").split()[0] == want
    wait_for(lambda: [(r["path"], r["status"]) for r in transfers(srv, box)]
             == [("/workspace/d", "done")] * 2, 10)


def test_sftp_makes_the_sandbox_and_waits_for_it(srv, box):
    assert "Remote working directory: /workspace\n" \
        in sftp_ok(srv, box, "pwd\n")


def test_sftp_sees_the_sandbox_and_not_the_host(srv, box, tmp_path):
    """The tree, the processes, links that lead out: all are the sandbox's."""
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    secret.chmod(0o644)
    for path in (secret, srv.dir, "/root", "/etc/shadow", "/home"):
        done = sftp(srv, box, f"ls {path}\n")
        assert done.returncode != 0, done.stdout
        assert b"not found" in done.stderr or b"No such" in done.stderr, \
            done.stderr
    srv.out(box, f"ln -s {secret} out; ln -s ../../../..{secret} up")
    for link in ("out", "up"):
        done = sftp(srv, box, f"get {link} {tmp_path}/{link}\n")
        assert not (tmp_path / link).exists()
        assert b"No such file" in done.stderr or b"not found" in done.stderr
    done = sftp(srv, box, "put /etc/hostname /usr/bin/x\n")
    assert b"Read-only" in done.stderr or b"Failure" in done.stderr \
        or b"denied" in done.stderr, done.stderr


def test_the_sftp_server_is_inside_and_has_nothing(srv, box):
    """Its process: the sandbox's namespaces, no privilege, its own groups."""
    client = Raw(srv, box)
    p = procs.get(srv.session(box)["pid"])
    assert p.comm == "sftp-server"
    with open(f"/proc/{p.pid}/status", encoding="utf-8") as f:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in f)
    assert int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0
    assert status["NoNewPrivs"] == "1" and status["Seccomp"] == "2"
    for kind in ("user", "pid", "mnt", "net", "ipc", "uts", "cgroup"):
        assert p.link(f"ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
    client.child.stdin.close()
    assert client.child.wait(20) == 0
