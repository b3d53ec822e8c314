"""A forwarded port (ssh -L): bytes in bulk, both ways, and how long one byte
takes there and back. The target is in this process and costs as little as it
can; no program runs in a session.
"""

import os
import select
import socket
import subprocess
import threading
import time

import berth
from servers import AES, CHACHA

GB = 1e9
MB = 1e6
STALL_S = 60.0


class Target:
    """Accepts once on a port of 127.0.0.1 and talks."""

    def __init__(self, talk):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.run, args=(talk,),
                                       daemon=True)
        self.thread.start()

    def run(self, talk):
        try:
            conn, _ = self.listener.accept()
            with conn:
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                talk(conn)
        except OSError:
            pass  # closed: the measure is over

    def close(self):
        self.listener.close()


class Tunnel:
    """`ssh -N -L` to a target, and a connection through it."""

    def __init__(self, side, cipher, target):
        port = berth.free_port()
        self.child = subprocess.Popen(
            [*side.ssh_args("-N", "-L",
                            f"127.0.0.1:{port}:127.0.0.1:{target.port}",
                            cipher=cipher)],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            self.sock = berth.wait_for(lambda: self.connect(port),
                                       what="a forwarded port")
        except berth.Failure:
            berth.end(self.child)
            raise
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @staticmethod
    def connect(port):
        try:
            return socket.create_connection(("127.0.0.1", port), STALL_S)
        except OSError:
            return None

    def close(self):
        self.sock.close()
        berth.end(self.child)


def throw_away(sock, size):
    """Splices exactly size bytes into nothing."""
    null = os.open("/dev/null", os.O_WRONLY)
    r, w = os.pipe()
    try:
        while size > 0:
            if not select.select([sock], [], [], STALL_S)[0]:
                raise berth.Failure(f"{size} bytes do not come")
            n = os.splice(sock.fileno(), w, min(size, 1 << 16))
            if n == 0:
                raise berth.Failure(f"ended {size} bytes too early")
            size -= n
            while n > 0:
                n -= os.splice(r, null, n)
    finally:
        for fd in (null, r, w):
            os.close(fd)


def send_zeroes(sock, size):
    """From a file of holes, which costs nothing to read."""
    zeroes = os.memfd_create("zeroes")
    try:
        os.ftruncate(zeroes, size)
        at = 0
        while at < size:
            at += os.sendfile(sock.fileno(), zeroes, at, size - at)
    finally:
        os.close(zeroes)


def timed(side, size, move):
    before = side.cpu_by_process()
    start_s = time.perf_counter()
    move()
    seconds = time.perf_counter() - start_s
    return {"rate": size / MB / seconds,
            "cpu": side.cpu_since(before) * GB / size}


def down(cipher):
    """From the target to the client."""
    def measure(bench, side):
        size = bench.sizes.stream_bytes

        def talk(conn):
            conn.recv(1)
            conn.setblocking(True)
            send_zeroes(conn, size)
            conn.recv(1)

        def move():
            tunnel.sock.sendall(b"g")
            throw_away(tunnel.sock, size)

        target = Target(talk)
        tunnel = Tunnel(side, cipher, target)
        try:
            return timed(side, size, move)
        finally:
            tunnel.close()
            target.close()

    return measure


def up(cipher):
    """From the client to the target, until that has it all."""
    def measure(bench, side):
        size = bench.sizes.stream_bytes

        def talk(conn):
            conn.sendall(b"r")
            throw_away(conn, size)
            conn.sendall(b"k")
            conn.recv(1)

        def move():
            tunnel.sock.setblocking(True)
            send_zeroes(tunnel.sock, size)
            if tunnel.sock.recv(1) != b"k":
                raise berth.Failure("the target did not get it all")

        target = Target(talk)
        tunnel = Tunnel(side, cipher, target)
        try:
            tunnel.sock.recv(1)
            return timed(side, size, move)
        finally:
            tunnel.close()
            target.close()

    return measure


def ping(bench, side):
    """One byte there and back, many times."""
    def talk(conn):
        while data := conn.recv(1):
            conn.sendall(data)

    target = Target(talk)
    tunnel = Tunnel(side, AES, target)
    found = []
    try:
        for i in range(20 + 4 * bench.sizes.keys):
            start_s = time.perf_counter()
            tunnel.sock.sendall(b"x")
            if tunnel.sock.recv(1) != b"x":
                raise berth.Failure("no answer to a byte")
            if i >= 20:
                found.append((time.perf_counter() - start_s) * 1e3)
    finally:
        tunnel.close()
        target.close()
    return {"p50": found, "p99": found}


MEASURES = {
    "forward_down_aes": down(AES), "forward_down_chacha": down(CHACHA),
    "forward_up_aes": up(AES), "forward_up_chacha": up(CHACHA),
    "forward_ping": ping,
}
