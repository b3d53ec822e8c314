"""An SSH peer that says what no client says: bytes before the key exchange,
and single packets after it through paramiko's transport.
"""

import os
import socket
import struct
import time

import paramiko

IDENT = b"SSH-2.0-raw\r\n"


def connect(port, source=None, timeout=30):
    return socket.create_connection(
        ("127.0.0.1", port), timeout, source and (source, 0)
    )


def read_until_closed(sock, deadline):
    """All that the server says until it closes; None if it did not close."""
    end = time.monotonic() + deadline
    data = b""
    while True:
        left = end - time.monotonic()
        if left <= 0:
            return None
        sock.settimeout(left)
        try:
            chunk = sock.recv(65536)
        except socket.timeout:
            return None
        except OSError:
            return data
        if not chunk:
            return data
        data += chunk


def read_exactly(sock, n):
    data = b""
    while len(data) < n:
        chunk = sock.recv(n - len(data))
        if not chunk:
            raise EOFError("closed")
        data += chunk
    return data


def read_line(sock):
    line = b""
    while not line.endswith(b"\n"):
        line += read_exactly(sock, 1)
    return line


def packet(payload):
    """A packet of the unencrypted phase (RFC 4253 6)."""
    pad = 8 - (len(payload) + 5) % 8
    pad += 8 if pad < 4 else 0
    return (
        struct.pack(">IB", len(payload) + pad + 1, pad) + payload + bytes(pad)
    )


def read_packet(sock):
    length, pad = struct.unpack(">IB", read_exactly(sock, 5))
    return read_exactly(sock, length - 1)[: length - 1 - pad]


def kexinit_lists(payload):
    """The ten name lists of a KEXINIT."""
    assert payload[0] == 20
    at, lists = 17, []
    for _ in range(10):
        (n,) = struct.unpack(">I", payload[at: at + 4])
        lists.append(payload[at + 4: at + 4 + n].decode().split(","))
        at += 4 + n
    return lists


def kexinit(kex, hostkey="ssh-ed25519"):
    names = [
        kex, hostkey, "aes256-ctr", "aes256-ctr", "hmac-sha2-256",
        "hmac-sha2-256", "none", "none", "", "",
    ]
    body = b"".join(
        struct.pack(">I", len(n)) + n.encode() for n in names
    )
    return b"\x14" + os.urandom(16) + body + bytes(5)


def transport(srv):
    """A connection after NEWKEYS, before any authentication."""
    t = paramiko.Transport(connect(srv.port))
    t.banner_timeout = t.auth_timeout = 60
    t.start_client(timeout=60)
    return t


def load(key):
    return paramiko.Ed25519Key.from_private_key_file(str(key))


def login(t, user, key):
    """The methods left, or [] when the login succeeded."""
    return t.auth_publickey(user, load(key))


def message(kind, *parts):
    """A packet's payload: bool, int, str and bytes as SSH writes them."""
    m = paramiko.Message()
    m.add_byte(bytes([kind]))
    for part in parts:
        if isinstance(part, bool):
            m.add_boolean(part)
        elif isinstance(part, int):
            m.add_int(part)
        else:
            m.add_string(part)
    return m
