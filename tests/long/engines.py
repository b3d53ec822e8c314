"""Engines with a state of their own, each below a directory that goes with it,
and an image that is put together from this machine's files: docker.io, podman
with runc, and LXD, from Debian's packages (scripts/deps.sh engines). Their
programs and /bin/busybox have to be there.
"""

import io
import os
import pathlib
import pwd
import shutil
import subprocess
import tarfile
import tempfile
import time

import berth
from berth import run, wait_for

TOOLS = ("sh cat ls env kill stty tty wc id nc sleep true false printf echo rm "
         "mkdir ps seq head hostname setsid ifconfig tar mv chmod stat rmdir "
         "dd").split()
SFTP = "/usr/lib/openssh/sftp-server"


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
                raise berth.Failure(
                    f"{self.name}: the daemon ended: {log}")
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
