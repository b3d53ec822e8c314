"""Native sandboxes: what it takes to make one, to run a command in one, to let
it sleep and wake, and to keep and bring back its files; and what 200 of them
hold. In the other column is who is named: bubblewrap, runc and Docker where
they are installed, OpenSSH's sshd without any sandbox, tar with zstd.
"""

import collections
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import berth
import logins
import servers

TEMPLATE = "native"
PAUSE_S = 0.05


def wall_ms(call, *args, **kw):
    start_s = time.perf_counter()
    call(*args, **kw)
    return (time.perf_counter() - start_s) * 1e3


def times(n, call, *args):
    """With pauses: on a machine that is kept busy the kernel answers sooner."""
    found = []
    for _ in range(n):
        time.sleep(PAUSE_S)
        found.append(wall_ms(call, *args))
    return found


def quietly(*args, **kw):
    child = subprocess.Popen(args, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, **kw)
    if servers.status_of(child, 120) != 0:
        raise berth.Failure(f"{args}: status {child.returncode}")


class Box:
    """A native sandbox that goes at the end."""

    def __init__(self, side, create=True):
        self.side, self.name = side, side.new_name()
        if create:
            self.ask("create", template=TEMPLATE)

    def ask(self, verb, **more):
        return self.side.ask(verb=f"sandbox_{verb}", sandbox=self.name, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ask("rm")


class Mux:
    """An open connection; run() is one more channel on it."""

    def __init__(self, side, user=None):
        self.dir = tempfile.mkdtemp(prefix="bench-mux-")
        path = f"ControlPath={self.dir}/s"
        args = side.ssh_args("-o", path, user=user)
        # the first of a doubled option counts
        self.args = [args[0], "-o", path, *args[1:]]
        self.master = subprocess.Popen(
            [args[0], "-o", "ControlMaster=yes", *self.args[1:], "-N"],
            stdin=subprocess.DEVNULL)
        berth.wait_for(lambda: os.path.exists(f"{self.dir}/s"),
                       what="a shared connection")

    def run(self):
        quietly(*self.args, "true")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        berth.end(self.master)
        shutil.rmtree(self.dir, ignore_errors=True)


# ---- others ----------------------------------------------------------------


def bwrap():
    """The start of `true` in a new sandbox like ours."""
    quietly("bwrap", "--unshare-all", "--ro-bind", "/usr", "/usr",
            "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64",
            "--symlink", "usr/bin", "/bin", "--proc", "/proc", "--dev", "/dev",
            "--tmpfs", "/tmp", "--bind", "/tmp", "/workspace",
            "--", "/bin/true")


def bwrap_samples(n):
    return times(n, bwrap) if shutil.which("bwrap") else []


def runc_samples(n):
    """`runc exec` of `true` in a container that runs."""
    busybox = pathlib.Path("/bin/busybox")
    if not shutil.which("runc") or not busybox.exists():
        return []
    top = pathlib.Path(tempfile.mkdtemp(prefix="bench-runc-"))
    runc = ("runc", "--root", str(top / "state"))
    try:
        (top / "rootfs/bin").mkdir(parents=True)
        shutil.copy(busybox, top / "rootfs/bin/busybox")
        for tool in ("true", "sleep"):
            (top / f"rootfs/bin/{tool}").symlink_to("busybox")
        quietly("runc", "spec", cwd=top)
        quietly("sed", "-i", 's/"terminal": true/"terminal": false/;'
                's/^\\t*"sh"/"sleep", "600"/', str(top / "config.json"))
        quietly(*runc, "run", "-d", "bench", cwd=top)
        try:
            return times(n, quietly, *runc, "exec", "bench", "/bin/true")
        finally:
            quietly(*runc, "delete", "-f", "bench")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def docker_samples(n):
    """`docker exec` of `true` in a container that runs."""
    sys.path.insert(0, str(servers.ROOT / "tests" / "long"))
    import engines

    if not all(map(os.path.exists, ("/usr/bin/docker", "/usr/sbin/dockerd",
                                    "/bin/busybox"))):
        return []
    docker = engines.Docker()
    try:
        docker.start()
        env = dict(os.environ, **docker.env)
        call = ("/usr/bin/docker", "run", "-d", "--network=none", "--name=bench",
                "berth-test:1", "sleep", "600")
        quietly(*call, env=env)
        try:
            return times(n, lambda: quietly(
                "/usr/bin/docker", "exec", "bench", "true", env=env))
        finally:
            quietly("/usr/bin/docker", "rm", "-f", "bench", env=env)
    finally:
        docker.stop()


# ---- measures --------------------------------------------------------------


class Contained:
    """A berthd whose sandboxes are native: a login makes them."""

    def __init__(self, bench):
        self.side = bench.contained

    def scale(self, size):
        """So many wait, and nobody works on one more."""
        self.side.ask(verb="sandbox_pool_scale", template="bench", size=size)
        files = self.side.server.boxes / ".pool"
        berth.wait_for(
            lambda: (self.side.ask(verb="sandbox_pools", template="bench")
                     ["rows"][0]["ready"] == size
                     == (len(list(files.iterdir())) if files.exists() else 0)),
            120, f"{size} members")

    def create_ms(self, box):
        return times(1, box.ask, "create")[0]

    def login_ms(self, user):
        return logins.first_byte_ms(self.side.ssh_args("-tt", user=user))

    def round(self, found):
        """One of each, so that what the machine does besides hits all."""
        for kind, size in (("cold", 0), ("pool", 1)):
            self.scale(size)
            box = Box(self.side, create=False)
            found[f"new_{kind}"].append(self.create_ms(box))
            box.ask("rm")
            self.scale(size)
            box = Box(self.side, create=False)
            found[f"login_{kind}"].append(self.login_ms(box.name))
            found["session"].append(self.login_ms(f"{box.name}+other"))
            found["attach"].append(self.login_ms(box.name))
            box.ask("rm")
        self.scale(0)
        found["above"].append(found["login_pool"][-1] - found["session"][-1])


def make(bench, side):
    """New sandboxes, cold and from a pool, by request and by a login; beside
    (in the other column) bubblewrap and a login to a new session in one that is
    there."""
    n = bench.sizes.logins
    contained = Contained(bench)
    if side.name != "berth":
        with Box(contained.side) as box:
            there = [contained.login_ms(f"{box.name}+s{i}") for i in range(n)]
        return {"new_cold": bwrap_samples(n), "login_cold": there,
                "login_pool": there}
    found = collections.defaultdict(list)
    for _ in range(n):
        contained.round(found)
    return found


def command(bench, side):
    """`true` over a connection that is open; others as they run one."""
    n = bench.sizes.logins * 2
    if side.name != "berth":
        with Mux(side) as mux:
            return {"sshd": times(n, mux.run), "bwrap": bwrap_samples(n),
                    "runc": runc_samples(n), "docker": docker_samples(n)}
    with Box(side) as box, Mux(side, user=box.name) as mux:
        found = times(n, mux.run)
    return {peer: found for peer in ("sshd", "bwrap", "runc", "docker")}


def sleep(bench, side):
    if side.name != "berth":
        return {}
    found = {"suspend": [], "resume": []}
    with Box(side) as box:
        session, _ = side.new_session("sleep", "600", sandbox=box.name)
        for _ in range(bench.sizes.logins):
            for verb, samples in found.items():
                samples += times(1, box.ask, verb)
        side.end_session(session)
    return found


def fill(folder, size):
    """10,000 files, half of what is in them cannot be made smaller."""
    n = 10_000
    for i in range(n):
        path = folder / f"d{i % 100}"
        path.mkdir(exist_ok=True)
        half = size // n // 2
        (path / f"f{i}").write_bytes(os.urandom(half) + b"x" * half)


def snapshot(bench, side):
    size = bench.sizes.tree_bytes
    if side.name != "berth":
        top = pathlib.Path(tempfile.mkdtemp(prefix="bench-tar-"))
        try:
            (top / "tree").mkdir()
            (top / "back").mkdir()
            fill(top / "tree", size)
            zstd = ["-I", "zstd -q -1 -T2"]
            return {
                "take": wall_ms(quietly, "tar", *zstd, "-C", str(top / "tree"),
                                "-cf", str(top / "tar"), ".") / 1e3,
                "restore": wall_ms(quietly, "tar", *zstd, "-C",
                                   str(top / "back"), "-xpf",
                                   str(top / "tar")) / 1e3}
        finally:
            shutil.rmtree(top)
    with Box(side) as box:
        fill(side.server.boxes / box.name, size)
        quietly("chown", "-R", "--reference",
                str(side.server.boxes / box.name),
                str(side.server.boxes / box.name))
        start_s = time.perf_counter()
        made = box.ask("snapshot")["id"]
        take_s = time.perf_counter() - start_s
        restore_ms = wall_ms(side.ask, verb="sandbox_restore", snapshot=made)
        side.ask(verb="sandbox_forget", snapshot=made)
    return {"take": take_s, "restore": restore_ms / 1e3}


def held_mib():
    """What cannot be taken back: of processes, file systems in memory and the
    kernel. The page cache would tell of everything else that goes on."""
    with open("/proc/meminfo", encoding="ascii") as f:
        kib = {name: int(rest.split()[0])
               for name, rest in (line.split(":") for line in f)}
    return sum(kib[name] for name in (
        "AnonPages", "Shmem", "SUnreclaim", "KernelStack", "PageTables",
        "Percpu")) / 1024


def many(bench, side):
    """Idle sandboxes, by what the system holds more of."""
    if side.name != "berth":
        return {}
    before = held_mib()
    start_s = time.perf_counter()
    boxes = [Box(side) for _ in range(bench.sizes.sessions)]
    create_s = time.perf_counter() - start_s
    time.sleep(2)
    held = held_mib() - before
    for box in boxes:
        box.ask("rm")
    return {"memory": held, "create": create_s}


MEASURES = {
    "box_make": make, "box_command": command, "box_sleep": sleep,
    "box_snapshot": snapshot, "box_many": many,
}
