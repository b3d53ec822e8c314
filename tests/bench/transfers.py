"""Files: sftp of one large one, scp of many small ones, rsync, git, and
streams over a line with 50 ms of delay. The same clients talk to both servers,
which run the same sftp-server. Large files are sparse or nowhere: what a disk
does is not what is compared.
"""

import os
import shutil
import subprocess
import sys
import time

import berth
from servers import ROOT
from streams import MB, run_down, spawn, HOLD

RELAY = ROOT / "tests" / "bench" / "relay.py"
DELAY_MS = 25  # each way
READY = b"Remote working directory"


def command(side, program):
    """PROGRAM with the options that side's ssh gets, without the host."""
    args = side.ssh_args()
    at = args.index("-p")
    return [program, *args[1:at], "-o", f"Port={args[at + 1]}"]


def host(side, path=""):
    """A place below that side's home; root's own home stays as it is."""
    return f"{side.user}@127.0.0.1:{side.home}/{path}"


def login(side):
    return f"{side.user}@127.0.0.1"


def run(args, **kw):
    """Seconds that a client takes; fails as it does."""
    start_s = time.perf_counter()
    done = berth.run(args, 300, **kw)
    if done.returncode != 0:
        raise berth.Failure(f"{args}: {done.returncode} {done.stderr!r}")
    return time.perf_counter() - start_s


def remote(side, line):
    run([*side.ssh_args(), line])


def folder(bench):
    """Where both servers' users may read what a measure made."""
    return bench.berth.server.public


def made(bench, name, make):
    """The file or tree NAME in folder(); made once."""
    path = folder(bench) / name
    if not path.exists():
        make(path)
    return path


def say(child, text):
    """Lets sftp do TEXT; returns when it has done so."""
    child.stdin.write(f"{text}pwd\n".encode())
    child.stdin.flush()
    for line in child.stdout:
        if line.startswith(READY):
            return
    raise berth.Failure(f"sftp ended in {text}")


def sftp(is_put):
    """One file, without the login."""
    def measure(bench, side):
        size = bench.sizes.stream_bytes
        path = made(bench, "big", lambda p: (
            p.touch(0o644), os.truncate(p, size)))
        child = spawn(
            [*command(side, "sftp"), "-q", "-b", "-", login(side)],
            stdin=subprocess.PIPE)
        try:
            say(child, "")
            before = side.cpu_by_process()
            start_s = time.perf_counter()
            say(child, f"put {path} /dev/null\n" if is_put
                else f"get {path} /dev/null\n")
            seconds = time.perf_counter() - start_s
            cpu_s = side.cpu_since(before)
        finally:
            berth.end(child)
        return {"rate": size / MB / seconds, "cpu": cpu_s * 1e9 / size}

    return measure


def make_small(n, size):
    def make(path):
        path.mkdir()
        data = os.urandom(size)
        for i in range(n):
            part = path / str(i // 1000)
            part.mkdir(exist_ok=True)
            (part / f"f{i}").write_bytes(data)

    return make


def scp_small(bench, side):
    """`scp -r` of many files to the server, and back."""
    n = bench.sizes.files
    tree = made(bench, "small", make_small(n, 1000))
    base = [*command(side, "scp"), "-q", "-r"]
    back = folder(bench) / "back"
    try:
        up_s = run([*base, tree, host(side, "small")])
        down_s = run([*base, host(side, "small"), back])
    finally:
        remote(side, f"rm -rf {side.home}/small")
        shutil.rmtree(back, ignore_errors=True)
    return {"up": up_s, "down": down_s}


def rsync_tree(bench, side):
    """A tree to the server, then the same again: nothing to do."""
    n = bench.sizes.tree_bytes // 100_000
    tree = made(bench, "tree", make_small(n, 100_000))
    base = ["rsync", "-a", "-e", " ".join(command(side, "ssh")), f"{tree}/",
            host(side, "tree/")]
    try:
        return {"first": run(base), "again": run(base)}
    finally:
        remote(side, f"rm -rf {side.home}/tree")


def git_clone(bench, side):
    """A repository that the server's user owns."""
    env = {**os.environ, "GIT_SSH_COMMAND": " ".join(command(side, "ssh")),
           "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    copy = folder(bench) / "clone"
    size = bench.sizes.tree_bytes // 4
    remote(side, f"cd {side.home}; test -d r.git || (git init -q r && cd r &&"
           f" head -c {size} /dev/urandom | split -b 100000 -a 4 &&"
           " git add . && git -c user.name=a -c user.email=a@b commit -q -m x"
           " && cd .. && git clone -q --bare r r.git && rm -rf r)")
    try:
        return {"wall": run(
            ["git", "clone", "-q", host(side, "r.git"), copy], env=env)}
    finally:
        shutil.rmtree(copy, ignore_errors=True)


class Far:
    """A side behind the relay."""

    def __init__(self, side):
        self.child = subprocess.Popen(
            [sys.executable, RELAY, str(side.port), str(DELAY_MS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.side, self.port = side, int(self.child.stdout.readline())

    def ssh_args(self):
        args = self.side.ssh_args("-o", "StrictHostKeyChecking=no",
                                  "-o", "UserKnownHostsFile=/dev/null")
        args[args.index("-p") + 1] = str(self.port)
        # the first of a doubled option counts: ours must come before
        return [args[0], "-o", "StrictHostKeyChecking=no",
                "-o", "UserKnownHostsFile=/dev/null", *args[1:]]

    def __getattr__(self, name):
        return getattr(self.side, name)

    def close(self):
        berth.end(self.child)


def far_down(bench, side):
    far, size = Far(side), bench.sizes.far_bytes
    try:
        args = [*far.ssh_args(), "echo go; read -r x; dd if=/dev/zero bs=1M"
                f" count={size >> 20} status=none; {HOLD}"]
        return {"rate": run_down(far, args, size)["rate"]}
    finally:
        far.close()


def far_up(bench, side):
    far, size = Far(side), bench.sizes.far_bytes
    zeroes = os.memfd_create("zeroes")
    os.ftruncate(zeroes, size)
    try:
        child = spawn([*far.ssh_args(), "echo go; cat | wc -c"], stdin=zeroes)
        try:
            first = child.stdout.readline()
            start_s = time.perf_counter()
            said = child.stdout.readline()
            seconds = time.perf_counter() - start_s
        finally:
            berth.end(child)
        if first != b"go\n" or int(said) != size:
            raise berth.Failure(f"far up: {first!r} {said!r}")
        return {"rate": size / MB / seconds}
    finally:
        os.close(zeroes)
        far.close()


def far_sftp(is_put):
    def measure(bench, side):
        far, size = Far(side), bench.sizes.far_bytes
        path = made(bench, "far", lambda p: (
            p.touch(0o644), os.truncate(p, size)))
        args = far.ssh_args()
        at = args.index("-p")
        child = spawn(
            ["sftp", *args[1:at], "-o", f"Port={args[at + 1]}", "-q", "-b",
             "-", login(side)], stdin=subprocess.PIPE)
        try:
            say(child, "")
            start_s = time.perf_counter()
            say(child, f"put {path} /dev/null\n" if is_put
                else f"get {path} /dev/null\n")
            seconds = time.perf_counter() - start_s
        finally:
            berth.end(child)
            far.close()
        return {"rate": size / MB / seconds}

    return measure


def sequence(bench, side):
    """`ssh host true` again and again: how long all of them take."""
    n = bench.sizes.logins * 10
    start_s = time.perf_counter()
    for _ in range(n):
        remote(side, "true")
    return {"rate": n / (time.perf_counter() - start_s)}


MEASURES = {
    "sftp_put": sftp(True), "sftp_get": sftp(False), "scp_small": scp_small,
    "rsync": rsync_tree, "git": git_clone, "far_up": far_up,
    "far_down": far_down, "far_put": far_sftp(True),
    "far_get": far_sftp(False), "sequence": sequence,
}

