"""Real engines behind conf/providers/*.conf: docker.io, podman with runc and
LXD, each with a state of its own and an image that is put together from this
machine's files. What is asked of berth is the same for each. kubectl is played
by a recorder in tests/blackbox/test_command.py.
"""

import io
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time

import pytest

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent / "blackbox"))

import berth  # noqa: E402
import files  # noqa: E402
from berth import run, wait_for  # noqa: E402

PROVIDERS = HERE.parent.parent / "conf" / "providers"
TOOLS = ("sh cat ls env kill stty tty wc id nc sleep true false printf echo rm "
         "mkdir ps seq head hostname setsid ifconfig").split()
SFTP = "/usr/lib/openssh/sftp-server"

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0, reason="explained: engines are root's")


def image(path, with_init=False):
    """A tar of a system: busybox, bash, sftp-server and what they link."""
    with tarfile.open(path, "w") as tar:

        def add(name, data=None, mode=0o755, kind=tarfile.REGTYPE, link=""):
            info = tarfile.TarInfo(name.lstrip("/"))
            info.mode, info.type, info.linkname = mode, kind, link
            if kind != tarfile.REGTYPE:
                tar.addfile(info)
                return
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))

        for folder in ("bin", "sbin", "etc", "proc", "sys", "dev", "root",
                       "run", "usr/lib/openssh", "lib64", "workspace", "var"):
            add(folder, kind=tarfile.DIRTYPE)
        add("tmp", mode=0o1777, kind=tarfile.DIRTYPE)
        add("bin/busybox", pathlib.Path("/bin/busybox").read_bytes())
        for tool in TOOLS:
            add(f"bin/{tool}", kind=tarfile.SYMTYPE, link="busybox")
        if with_init:
            add("sbin/init", b"#!/bin/sh\nifconfig lo 127.0.0.1 up\n"
                             b"trap 'exit 0' TERM PWR\n"
                             b"while :; do sleep 3600 & wait $!; done\n")
        linked = {SFTP, "/bin/bash"}
        for program in list(linked):
            text = subprocess.run(["ldd", program], capture_output=True,
                                  check=True).stdout.decode()
            linked |= {w for w in text.split() if w.startswith("/")}
        for name in linked:
            add(name, pathlib.Path(os.path.realpath(name)).read_bytes())
        # sftp-server does not run for a uid without a name.
        add("etc/passwd", b"root:x:0:0::/root:/bin/sh\n" +
            b"box:x:%d:%d::/workspace:/bin/sh\n" % (
                (one := pwd.getpwnam("berth-box")).pw_uid, one.pw_gid), 0o644)
        add("etc/group", b"root:x:0:\n", 0o644)
        add("etc/hosts", b"127.0.0.1 localhost\n", 0o644)


class Engine:
    """One engine with its daemon, below a directory of its own."""

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="berth-eng-"))
        self.dir.chmod(0o711)
        self.env = {}
        self.options = {}
        self.daemon = None

    def call(self, *args, **kw):
        env = dict(os.environ, **self.env)
        return run([self.program, *args], env=env, timeout=60, **kw)

    def spawn(self, *args):
        with open(self.dir / "log", "ab") as log:
            self.daemon = subprocess.Popen(
                args, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=dict(os.environ, **self.env), start_new_session=True)

    def wait(self, *args):
        def answers():
            if self.daemon and self.daemon.poll() is not None:
                log = (self.dir / "log").read_text()[-1000:]
                pytest.fail(f"{self.name}: the daemon ended: {log}")
            return self.call(*args).returncode == 0
        wait_for(answers, 40, f"{self.name} answers")

    def stop(self):
        if self.daemon:
            self.daemon.terminate()
            try:
                self.daemon.wait(30)
            except subprocess.TimeoutExpired:
                self.daemon.kill()
                self.daemon.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Docker(Engine):
    name, program, template = "docker", "/usr/bin/docker", "docker"
    home = "/workspace"

    def start(self):
        sock = f"unix://{self.dir}/sock"
        self.env = {"DOCKER_HOST": sock}
        self.spawn("dockerd", "-H", sock, "--data-root", self.dir / "data",
                   "--exec-root", self.dir / "exec", "-p", self.dir / "pid",
                   "--bridge=none", "--iptables=false", "--ip6tables=false",
                   "--ip-forward=false", "--ip-masq=false")
        self.wait("version")
        image(self.dir / "image.tar")
        done = self.call("import", self.dir / "image.tar", "berth-test:1")
        assert done.returncode == 0, done.stderr
        self.options = {
            "provider docker__env": f"DOCKER_HOST={sock}",
            "provider docker__image": "berth-test:1",
            "provider docker__shell": "/bin/bash",
            "provider docker__program": self.program,
            "provider docker__forward":
                "{program} exec --interactive berth-{name} nc {host} {port}",
        }

    def lose(self, box):
        assert self.call("rm", "-f", f"berth-{box}").returncode == 0

    def is_there(self, box):
        done = self.call("ps", "-a", "--format={{.Names}}")
        return f"berth-{box}" in done.stdout.decode().split()


class Podman(Docker):
    name, program, template = "podman", "/usr/bin/podman", "podman"

    def start(self):
        conf = self.dir / "containers.conf"
        conf.write_text(
            '[containers]\ndefault_ulimits = ["nofile=4096:4096", '
            '"nproc=4096:4096"]\n'
            '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\n'
            'events_logger = "file"\n')
        storage = self.dir / "storage.conf"
        storage.write_text(
            f'[storage]\ndriver = "overlay"\n'
            f'runroot = "{self.dir}/run"\ngraphroot = "{self.dir}/graph"\n')
        self.env = {"CONTAINERS_CONF": str(conf),
                    "CONTAINERS_STORAGE_CONF": str(storage)}
        self.wait("info")
        image(self.dir / "image.tar")
        done = self.call("import", self.dir / "image.tar", "berth-test:1")
        assert done.returncode == 0, done.stderr
        env = " ".join(f"{k}={v}" for k, v in self.env.items())
        self.options = {
            "provider podman__env": env,
            "provider podman__image": "localhost/berth-test:1",
            "provider podman__shell": "/bin/bash",
            "provider podman__forward":
                "{program} exec --interactive berth-{name} nc {host} {port}",
        }

    def stop(self):
        self.call("rm", "-f", "-a")
        run(["umount", "-q", self.dir / "graph/overlay"])
        super().stop()


class Lxd(Engine):
    name, program, template = "lxd", "/usr/bin/lxc", "lxd"
    home = "/root"

    def start(self):
        self.env = {"LXD_DIR": str(self.dir / "lxd"), "HOME": str(self.dir)}
        (self.dir / "lxd").mkdir()
        self.spawn("lxd", "--group", "root")
        self.wait("info")
        for step in (
                ["storage", "create", "default", "dir"],
                ["profile", "device", "add", "default", "root", "disk",
                 "path=/", "pool=default"],
                ["profile", "copy", "default", "berth-alone"]):
            done = self.call(*step)
            assert done.returncode == 0, (step, done.stderr)
        image(self.dir / "rootfs.tar", with_init=True)
        meta = self.dir / "metadata.yaml"
        meta.write_text(f"architecture: x86_64\n"
                        f"creation_date: {int(time.time())}\n")
        with tarfile.open(self.dir / "meta.tar", "w") as tar:
            tar.add(meta, "metadata.yaml")
        rootfs = self.dir / "rootfs.tar"
        done = self.call("image", "import", self.dir / "meta.tar", rootfs,
                         "--alias", "berth-test")
        assert done.returncode == 0, done.stderr
        env = " ".join(f"{k}={v}" for k, v in self.env.items())
        self.options = {
            "provider lxd__env": env,
            "provider lxd__image": "berth-test",
            "provider lxd__forward":
                "{program} exec --force-noninteractive berth-{dns} -- "
                "nc {host} {port}",
        }

    def lose(self, box):
        assert self.call("delete", "--force", f"berth-{box}").returncode == 0

    def is_there(self, box):
        done = self.call("list", "--format=csv", "--columns=n")
        return f"berth-{box}" in done.stdout.decode().split()

    def stop(self):
        self.call("stop", "--all", "--force")
        self.daemon.terminate()
        self.daemon.wait(30)
        for name in ("shmounts", "devlxd"):
            run(["umount", self.dir / "lxd" / name])
        super().stop()


@pytest.fixture(scope="module", params=[Docker, Podman, Lxd],
                ids=lambda c: c.name)
def engine(request):
    one = request.param()
    if not pathlib.Path("/bin/busybox").exists() or not shutil.which(one.program):
        pytest.skip(f"explained: {one.program} is not installed "
                    "(scripts/deps.sh engines)")
    try:
        one.start()
        yield one
    finally:
        one.stop()


@pytest.fixture(scope="module")
def srv(engine):
    server = berth.Server(start=False, **{
        "access__default_template": engine.template,
        "sandbox__providers": PROVIDERS / f"{engine.template}.conf",
        "session__stop_grace": "2s",
        "template small__provider": engine.template,
        "template small__memory": "64M",
        "template small__pids": "50",
        "template small__cpu": "50",
        f"provider {engine.template}__poll": "2s",
        **engine.options})
    server.start()
    yield server
    for row in server.json("sandbox", "ls"):
        server.berth("sandbox", "rm", row["name"], timeout=60)
    server.close()


@pytest.fixture(scope="module")
def box(srv):
    """One for all tests that do not harm it: making one takes a second."""
    srv.berth_ok("sandbox", "create", "shared", timeout=60)
    return "shared"


def stored(srv, box, name="s"):
    rows = [r for r in srv.sessions(box, True) if r["name"] == name]
    return max(rows, key=lambda r: r["created_ms"])


def phase(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0]["state"] if rows else None


def runs(srv, box, text):
    """True if a process of the sandbox has that in its command line."""
    script = ('for f in /proc/[0-9]*; do p=${f#/proc/}; [ $p = $$ ] || '
              'cat $f/cmdline 2>/dev/null; echo; done')
    found = srv.out(box, script).replace("\0", " ").splitlines()
    return any(text in line and "cmdline" not in line for line in found)


# ---- the same for each ------------------------------------------------------


def test_streams_code_and_end_of_input(srv, box):
    done = srv.ssh(box, "cat; echo err >&2; exit 7", input=b"in\0\xff\n" * 999)
    assert done.returncode == 7
    assert done.stdout == b"in\0\xff\n" * 999
    assert done.stderr == b"err\n"


def test_place_and_environment(srv, engine, box):
    out = srv.out(box, 'echo "$HOME,$(pwd),$BERTH_SANDBOX"; tty; id -u')
    where, terminal, uid = out.splitlines()
    assert where == f"{engine.home},{engine.home},{box}"
    assert terminal == "not a tty"
    if engine.name != "lxd":
        assert uid != "0"


def test_a_large_stream_is_whole(srv, box):
    done = srv.ssh(box, "seq 1 300000 | cat", timeout=60)
    want = "".join(f"{i}\n" for i in range(1, 300001)).encode()
    assert done.stdout == want


def test_terminal_size_keys_and_code(srv, box):
    term = srv.term(box, cols=90, rows=20).ready()
    term.send("tty; stty size\r")
    term.expect(r"/dev/(pts/\d+|console)\r\n20 90")
    term.resize(100, 30)
    term.send("sleep 1; stty size\r")
    term.expect("30 100")
    term.send("sleep 1000\r")
    wait_for(lambda: runs(srv, box, "sleep 1000"))
    term.send("\x03")
    term.send("echo back=$?\r")
    term.expect("back=130")
    # Keys that engines' clients take for themselves by default.
    term.send("stty -ixon; cat -v\r")
    wait_for(lambda: runs(srv, box, "cat -v"))
    term.send("\x10\x11abc\r")
    term.expect(r"\^P\^Qabc\r\n\^P\^Qabc")
    term.send("\x03")
    wait_for(lambda: not runs(srv, box, "cat -v"))
    term.send("exit 5\r")
    assert term.wait(20) == 5


def test_a_shared_session_outlives_its_viewers(srv, box):
    term = srv.term(f"{box}+live").ready()
    term.send("mark=here; echo set-$mark\r")
    term.expect("set-here")
    term.close()
    wait_for(lambda: stored(srv, box, "live")["attached"] == 0)
    term = srv.term(f"{box}+live")
    term.send("echo still-$mark\r")
    term.expect("still-here")
    term.send("exit\r")
    term.wait(20)


@pytest.mark.parametrize("name", ["TERM", "INT"])
def test_signals_arrive(srv, box, name):
    srv.berth_ok("new", "-s", box, "-n", name, "--no-pty", "--", "bash", "-c",
                 f"trap 'echo got; exit 9' {name}; echo set; "
                 "while :; do sleep .1; done")
    wait_for(lambda: "set" in srv.berth_ok("tail", f"{box}+{name}"))
    srv.berth_ok("kill", f"{box}+{name}", f"-{name}")
    wait_for(lambda: stored(srv, box, name)["status"] == "exited")
    assert stored(srv, box, name)["exit_code"] == 9


@pytest.mark.parametrize("pty", [True, False])
def test_kill_leaves_nothing_inside(srv, box, pty):
    """The client of an engine dies, and what it started goes with it."""
    mark = 2000 + pty
    srv.berth_ok("new", "-s", box, "-n", f"k{mark}",
                 *([] if pty else ["--no-pty"]), "--", "bash", "-c",
                 f"trap '' HUP TERM INT; sleep {mark} & sleep {mark}")
    wait_for(lambda: runs(srv, box, f"sleep {mark}"))
    srv.berth_ok("kill", f"{box}+k{mark}", "-KILL")
    wait_for(lambda: stored(srv, box, f"k{mark}")["status"] == "killed")
    wait_for(lambda: not runs(srv, box, f"sleep {mark}"), 20)


def test_a_vanished_client_ends_its_command(srv, box):
    child = srv.spawn(box, "sleep 3001")
    wait_for(lambda: runs(srv, box, "sleep 3001"))
    child.kill()
    wait_for(lambda: not runs(srv, box, "sleep 3001"), 20)


def test_files_by_sftp(srv, box, tmp_path):
    data = os.urandom(1_000_000)
    (tmp_path / "a").write_bytes(data)
    done = files.sftp(srv, box, f"put {tmp_path}/a copy\n"
                                f"get copy {tmp_path}/b\nrm copy\n")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b").read_bytes() == data


def test_ports_by_a_relay(srv, box):
    server = srv.spawn(box, "echo hello | nc -l -p 7777")
    local = berth.free_port()
    client = srv.spawn(box, opts=("-N", "-L", f"{local}:localhost:7777"))

    def hear():
        try:
            with socket.create_connection(("127.0.0.1", local), 5) as there:
                return there.recv(100) == b"hello\n"
        except OSError:
            return False
    wait_for(hear, 30)
    client.kill()
    server.kill()


def test_stats_from_inside(srv, box):
    (row,) = srv.json("sandbox", "stats", box)
    assert row["memory_bytes"] is None or row["memory_bytes"] > 0
    assert row["processes"] is None or row["processes"] > 0
    assert row["net_rx_bytes"] >= 0


def test_limits_are_the_engine_s(srv, engine):
    srv.berth_ok("sandbox", "create", "-t", "small", "small", timeout=60)
    done = srv.ssh("small", "x=$(head -c 200000000 /dev/zero | cat -v); echo no")
    assert b"no" not in done.stdout
    srv.berth_ok("sandbox", "rm", "small", timeout=60)
    assert not engine.is_there("small")


def test_suspend_and_resume(srv, engine):
    box = f"sus-{engine.name}"
    srv.berth_ok("sandbox", "create", box, timeout=60)
    srv.berth_ok("new", "-s", box, "-n", "s", "--no-pty", "--", "bash", "-c",
                 "i=0; while :; do echo $((i+=1)); sleep .05; done")
    wait_for(lambda: "5" in srv.berth_ok("tail", f"{box}+s"))
    srv.berth_ok("sandbox", "suspend", box)
    assert phase(srv, box) == "suspended"
    time.sleep(0.5)
    before = srv.berth_ok("tail", f"{box}+s")
    time.sleep(1)
    assert srv.berth_ok("tail", f"{box}+s") == before
    srv.berth_ok("sandbox", "resume", box)
    wait_for(lambda: srv.berth_ok("tail", f"{box}+s") != before)
    srv.berth_ok("sandbox", "rm", box, timeout=60)


def test_a_lost_sandbox_is_noticed_and_made_again(srv, engine):
    box = f"lost-{engine.name}"
    srv.out(box, "echo kept > file")
    engine.lose(box)
    wait_for(lambda: phase(srv, box) == "failed", 15)
    if engine.home == "/workspace":
        assert srv.out(box, "cat file") == "kept\n", "the workspace stays"
    else:
        assert srv.out(box, "echo again") == "again\n"
    srv.berth_ok("sandbox", "rm", box, timeout=60)
    assert not engine.is_there(box)


def test_removing_twice_and_behind_its_back(srv, engine):
    box = f"twice-{engine.name}"
    srv.berth_ok("sandbox", "create", box, timeout=60)
    engine.lose(box)
    srv.berth_ok("sandbox", "rm", box, timeout=60)
    assert srv.berth("sandbox", "rm", box).returncode == 3


def test_a_new_berthd_finds_everything(srv, engine, box):
    srv.berth_ok("new", "-s", box, "-n", "stay", "--", "sleep", "4001")
    wait_for(lambda: runs(srv, box, "sleep 4001"))
    srv.kill()
    srv.start()
    assert stored(srv, box, "stay")["status"] == "running"
    assert runs(srv, box, "sleep 4001")
    srv.berth_ok("kill", f"{box}+stay")
    wait_for(lambda: not runs(srv, box, "sleep 4001"), 20)
