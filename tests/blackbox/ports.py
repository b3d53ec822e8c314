"""Both ends of forwarded ports for the tests: servers that answer in a way of
their own, and what a test says to them through a tunnel.
"""

import hashlib
import re
import select
import socket
import struct
import threading
import time

from berth import Failure, free_port, wait_for


class Target:
    """A server on 127.0.0.1; talk(connection) runs in a thread for each."""

    def __init__(self, talk, backlog=128):
        self.sock = socket.create_server(("127.0.0.1", 0), backlog=backlog)
        self.port = self.sock.getsockname()[1]
        self.talk, self.count = talk, 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                conn, _ = self.sock.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(
                target=self._talk, args=(conn,), daemon=True
            ).start()

    def _talk(self, conn):
        with conn:
            conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                self.talk(conn)
            except OSError:
                pass

    def close(self):
        self.sock.close()


def echo(conn):
    """What comes goes back, the end too."""
    while data := conn.recv(1 << 18):
        conn.sendall(data)


def digest(conn):
    """The hash of everything, once the other side has said that it is all."""
    h = hashlib.sha256()
    while data := conn.recv(1 << 20):
        h.update(data)
    conn.sendall(h.hexdigest().encode())


def chunk(i):
    return struct.pack(">Q", i) * (1 << 13)  # 64 KiB that name their place


def source(size):
    """Bytes that are never the same twice, then the end."""
    def talk(conn):
        for i in range(size >> 16):
            conn.sendall(chunk(i))
        conn.shutdown(socket.SHUT_WR)
        while conn.recv(4096):
            pass
    return talk


def source_digest(size):
    h = hashlib.sha256()
    for i in range(size >> 16):
        h.update(chunk(i))
    return h.hexdigest()


def read_all(sock, deadline=60):
    """Everything until the end of the stream."""
    sock.settimeout(deadline)
    parts = []
    while data := sock.recv(1 << 20):
        parts.append(data)
    return b"".join(parts)


def is_open(port, deadline=5):
    """True if something accepts there."""
    try:
        socket.create_connection(("127.0.0.1", port), deadline).close()
        return True
    except OSError:
        return False


def connect(port, deadline=30):
    sock = socket.create_connection(("127.0.0.1", port), deadline)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def is_dropped(sock, deadline=20):
    """True if the other side ends or resets the connection without a byte."""
    sock.settimeout(deadline)
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def serves(port, text=b"ping"):
    """True if an echo answers there."""
    try:
        with connect(port, 10) as s:
            s.sendall(text)
            s.shutdown(socket.SHUT_WR)
            return read_all(s, 20) == text
    except OSError:
        return False


class Tunnel:
    """`ssh -N` with forwards; what it prints is kept."""

    def __init__(self, srv, user, *opts, key=None):
        self.child = srv.spawn(
            user, None, ["-N", "-o", "LogLevel=VERBOSE", *opts], key=key
        )
        self.text = b""
        self.lock = threading.Lock()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        while data := self.child.stderr.read1(65536):
            with self.lock:
                self.text += data

    def expect(self, pattern, deadline=30):
        def look():
            with self.lock:
                return re.search(pattern, self.text)
        try:
            return wait_for(look, deadline, pattern)
        except Failure as e:
            raise Failure(f"{e}; it printed {self.text[-600:]!r}") from None

    def close(self):
        self.child.kill()
        self.child.wait(10)


def local(srv, user, to, *opts, key=None):
    """A tunnel with one -L; returns it and the port to connect to."""
    port = free_port()
    t = Tunnel(srv, user, "-L", f"127.0.0.1:{port}:{to}", *opts, key=key)
    wait_for(lambda: is_listening(port), 30, "the client listens")
    return t, port


def is_listening(port):
    """Without connecting, which would open a channel."""
    want = f"0100007F:{port:04X}"
    with open("/proc/net/tcp", encoding="ascii") as f:
        return any(
            row.split()[1] == want and row.split()[3] == "0A"
            for row in f.readlines()[1:]
        )


def remote(srv, user, to, *opts, key=None):
    """A tunnel with one -R of any port; returns it and that port."""
    t = Tunnel(srv, user, "-R", f"0:{to}", *opts, key=key)
    return t, int(t.expect(rb"Allocated port (\d+)").group(1))


def socks(port, host, to, deadline=30):
    """Connects through a SOCKS 5 proxy, by name (RFC 1928)."""
    s = connect(port, deadline)
    s.sendall(b"\5\1\0")
    assert s.recv(2) == b"\5\0"
    name = host.encode()
    s.sendall(b"\5\1\0\3" + bytes([len(name)]) + name + struct.pack(">H", to))
    reply = s.recv(10)
    if len(reply) < 2 or reply[1]:
        s.close()
        return None
    return s


def quiet(sock, seconds):
    """Sends until nobody takes anything for that long; how much went."""
    sock.setblocking(False)
    sent, last = 0, time.monotonic()
    while time.monotonic() - last < seconds:
        if not select.select([], [sock], [], 0.2)[1]:
            continue
        try:
            sent += sock.send(b"\0" * (1 << 16))
            last = time.monotonic()
        except BlockingIOError:
            pass
    return sent
