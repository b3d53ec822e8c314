"""What the tests of file transfer share: stock clients as argument lists, a
client that says what none would say, rows of the store.
"""

import hashlib
import os
import pathlib
import struct
import subprocess

from berth import run, wait_for

SIZES = (0, 1, 32767, 32768, 32769, 1 << 20)


def options(srv, *opts, key=None):
    """Options that sftp, scp and rsync's ssh take alike."""
    return [
        "-F", "none", "-i", str(key or srv.key), "-o", "IdentitiesOnly=yes",
        "-o", "IdentityAgent=none", "-o", "BatchMode=yes",
        "-o", f"UserKnownHostsFile={srv.known_hosts}",
        "-o", "GlobalKnownHostsFile=/dev/null", "-o", "ConnectTimeout=60",
        "-o", "UpdateHostKeys=no", "-o", f"Port={srv.port}", *opts,
    ]


def sftp(srv, user, batch, *opts, key=None, timeout=60):
    """A batch of OpenSSH's sftp, text or bytes; the completed process."""
    data = batch if isinstance(batch, bytes) else batch.encode()
    return run(
        ["sftp", "-q", *options(srv, *opts, key=key), "-b", "-",
         f"{user}@127.0.0.1"], timeout, input=data,
    )


def sftp_ok(srv, user, batch, *opts, **kw):
    done = sftp(srv, user, batch, *opts, **kw)
    assert (done.returncode, done.stderr) == (0, b""), (batch, done)
    return done.stdout.decode()


def scp(srv, *args, opts=(), key=None, timeout=60, cwd=None):
    return run(
        ["scp", *options(srv, *opts, key=key), *args], timeout, cwd=cwd)


def at(user, path=""):
    return f"{user}@127.0.0.1:{path}"


def ssh_command(srv, *opts, key=None):
    """For rsync -e, GIT_SSH_COMMAND and their kind."""
    return " ".join(["ssh", *options(srv, *opts, key=key)])


def sha(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def workspace(srv, box):
    return srv.boxes / box


def noise(path, size):
    """A file of SIZE random bytes; its hash."""
    data = os.urandom(size)
    pathlib.Path(path).write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def transfers(srv, box, deadline=20):
    """Rows of a sandbox once no session of it lives."""
    wait_for(lambda: not srv.sessions(box), deadline, "sessions ended")
    return srv.sql(
        f"SELECT * FROM v_transfers WHERE sandbox = '{box}' ORDER BY id")


def names_of(rows):
    return [(r["direction"], r["path"].rsplit("/", 1)[-1], r["bytes"],
             r["status"]) for r in rows]


class Raw:
    """SFTP version 3 by hand over `ssh -s`; every answer is read in order."""

    INIT, OPEN, CLOSE, READ, WRITE = 1, 3, 4, 5, 6
    STATUS, HANDLE, DATA = 101, 102, 103
    CREATE_WRITE = 0x2 | 0x8

    def __init__(self, srv, user, *opts, key=None):
        self.child = srv.spawn(
            user, "sftp", [*opts, "-s"], key=key, stdin=subprocess.PIPE)
        self.next = 0
        self.send(self.INIT, struct.pack(">I", 3))
        assert self.read()[0] == 2

    def send(self, kind, body):
        self.child.stdin.write(struct.pack(">IB", len(body) + 1, kind) + body)
        self.child.stdin.flush()

    def ask(self, kind, body):
        """Sends with the next id; the answer is left for read()."""
        self.next += 1
        self.send(kind, struct.pack(">I", self.next) + body)

    def call(self, kind, body):
        self.ask(kind, body)
        return self.read()

    def read(self):
        """(kind, body behind the id) of the next packet."""
        (n,) = struct.unpack(">I", self.child.stdout.read(4))
        data = self.child.stdout.read(n)
        return data[0], data[5:]

    @staticmethod
    def text(b):
        b = b if isinstance(b, bytes) else b.encode()
        return struct.pack(">I", len(b)) + b

    def open(self, name, flags=CREATE_WRITE):
        kind, body = self.call(
            self.OPEN, self.text(name) + struct.pack(">II", flags, 0))
        assert kind == self.HANDLE, (name, kind, body)
        return body  # the handle as a string, as it is sent back

    def close(self, handle):
        assert self.call(self.CLOSE, handle)[1][:4] == bytes(4)

    def write(self, handle, offset, data):
        kind, body = self.call(
            self.WRITE, handle + struct.pack(">Q", offset) + self.text(data))
        return kind, struct.unpack(">I", body[:4])[0]
