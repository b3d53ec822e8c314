"""The two servers that are compared, each on a random port of 127.0.0.1 with
its own directory: berthd (the black-box tests' Server) and OpenSSH's sshd. The
same clients with the same key and options talk to both.
"""

import base64
import json
import os
import pathlib
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
os.environ.setdefault("BERTH_BUILD", str(ROOT / "build"))
sys.path.insert(0, str(ROOT / "tests" / "blackbox"))

import berth  # noqa: E402 - its folder and build had to be named first
import procs  # noqa: E402

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/local/sbin:"
                    + os.environ.get("PATH", "")) or "/usr/sbin/sshd"
SFTP_SERVER = "/usr/lib/openssh/sftp-server"
AES = "aes128-gcm@openssh.com"
CHACHA = "chacha20-poly1305@openssh.com"

# One exchange for both: the post-quantum one of newer OpenSSH costs more, and
# the SSH library of Debian 12 does not have it.
CLIENT_OPTIONS = (
    "IdentitiesOnly=yes", "IdentityAgent=none", "BatchMode=yes",
    "GlobalKnownHostsFile=/dev/null", "StrictHostKeyChecking=accept-new",
    "UpdateHostKeys=no", "ControlMaster=no", "ControlPath=none",
    "Compression=no", "LogLevel=ERROR", "ConnectTimeout=60",
    "KexAlgorithms=curve25519-sha256", "PreferredAuthentications=publickey",
    "IgnoreUnknown=ObscureKeystrokeTiming", "ObscureKeystrokeTiming=no",
)


def status_of(child, limit_s=60.0):
    """Waits for the end of a child, which is noticed at once: wait() with a
    limit looks every 50 ms."""
    pidfd = os.pidfd_open(child.pid)
    try:
        if not select.select([pidfd], [], [], limit_s)[0]:
            raise berth.Failure(f"{child.args}: no end in {limit_s} s")
    finally:
        os.close(pidfd)
    return child.wait()


class Side:
    """What a measure may ask of either server."""

    name = ""          # the column
    user = ""          # of a plain login
    programs = ()      # file names of what is the server, not the workload

    def ssh_args(self, *opts, user=None, cipher=AES):
        """Argument list up to the host; append the command to it."""
        options = [x for o in CLIENT_OPTIONS for x in ("-o", o)]
        return [
            "ssh", "-F", "/dev/null", "-i", str(self.key), *options,
            "-o", f"UserKnownHostsFile={self.known_hosts}", "-c", cipher,
            "-p", str(self.port), *opts, "-l", user or self.user,
            "127.0.0.1",
        ]

    def processes(self):
        """The server's own processes, without what runs in its sessions."""
        return [
            p for p in [procs.get(self.pid), *procs.descendants(self.pid)]
            if p and p.state not in "ZX"
            and os.path.basename(p.link("exe")) in self.programs
        ]

    def cpu_by_process(self):
        return {p.key: p.cpu_s for p in self.processes()}

    def cpu_since(self, before):
        """CPU seconds of all living processes since cpu_by_process()."""
        return sum(cpu_s - before.get(key, 0.0)
                   for key, cpu_s in self.cpu_by_process().items())

    def cpu_reaped(self):
        """CPU seconds of the server and every child that it has reaped,
        what ran in the sessions included."""
        with open(f"/proc/{self.pid}/stat", "rb") as f:
            fields = f.read().rsplit(b")", 1)[1].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def new_processes(self, before):
        """Those that are there now and not in cpu_by_process() then."""
        return [p for p in self.processes() if p.key not in before]


class Berth(Side):
    name = "berth"
    user = "bench"
    programs = ("berthd", "berth-sshd", "berth-session")

    def __init__(self, is_recording=True, **options):
        self.server = berth.Server(
            recording__enabled="yes" if is_recording else "no",
            recording__flush=None,
            recording__min_free=None,
            session__max_per_sandbox="1000",
            session__shell="/bin/bash",
            **options,
        )
        self.key = self.server.key
        self.home = self.server.boxes / self.user
        self.known_hosts = self.server.known_hosts
        self.count = 0

    @property
    def pid(self):
        return self.server.proc.pid

    @property
    def port(self):
        return self.server.port

    def ask(self, **request):
        """One request on the control socket, by itself."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(60)
            s.connect(str(self.server.socket))
            s.sendall(json.dumps(request).encode() + b"\n")
            with s.makefile("rb") as f:
                answer = json.loads(f.readline())
        if not answer.get("ok"):
            raise berth.Failure(f"{request}: {answer}")
        return answer

    def new_name(self):
        self.count += 1
        return f"s{self.count}"

    def new_session(self, *argv, sandbox=None):
        """A detached terminal session; returns (id, user name)."""
        name = self.new_name()
        box = sandbox or self.user
        request = {"argv": list(argv)} if argv else {}
        answer = self.ask(verb="new", sandbox=box, name=name, pty=True,
                          **request)
        return answer["id"], f"{box}+{name}"

    def type(self, session, text):
        self.ask(verb="send", session=session,
                 data=base64.b64encode(text).decode())

    def end_session(self, session):
        """Kills it and waits until it is stored as ended; drops its file."""
        self.ask(verb="kill", session=session, signal="KILL")
        berth.wait_for(
            lambda: self.ask(verb="info", session=session)["session"]["status"]
            not in ("creating", "running"),
            what="the end of a session",
        )
        self.drop_recordings()

    def drop_recordings(self):
        """Gives back the space of what was recorded so far."""
        for path in (self.server.state / "recordings").rglob("*.cast"):
            path.unlink(missing_ok=True)

    def close(self):
        self.server.close()


SSHD_CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {dir}/host_key
AuthorizedKeysFile {dir}/authorized_keys
PidFile none
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
PrintLastLog no
PermitRootLogin yes
PasswordAuthentication no
KbdInteractiveAuthentication no
MaxStartups 1000
MaxSessions 64
Compression no
SetEnv HOME={home}
Subsystem sftp {sftp_server}
"""


class OpenSsh(Side):
    name = "openssh"
    programs = ("sshd", "sshd-session", "sshd-auth")

    def __init__(self, client_key):
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bench-sshd-"))
        self.dir.chmod(0o711)
        self.key = client_key
        self.known_hosts = self.dir / "known_hosts"
        self.home = self.dir / "home"
        self.home.mkdir()
        self.port = berth.free_port()
        berth.make_key(self.dir / "host_key", "host")
        public = pathlib.Path(f"{client_key}.pub").read_text()
        (self.dir / "authorized_keys").write_text(public)
        (self.dir / "authorized_keys").chmod(0o644)
        (self.dir / "config").write_text(
            SSHD_CONFIG.format(port=self.port, dir=self.dir,
                               home=self.home, sftp_server=SFTP_SERVER))
        if os.geteuid() == 0:
            os.makedirs("/run/sshd", 0o755, exist_ok=True)
        with open(self.dir / "log", "wb") as log:
            self.proc = subprocess.Popen(
                [SSHD, "-D", "-e", "-f", str(self.dir / "config")],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        berth.wait_for(self.is_listening, what="sshd listens")

    @property
    def pid(self):
        return self.proc.pid

    def is_listening(self):
        if self.proc.poll() is not None:
            raise berth.Failure(
                "sshd ended: " + (self.dir / "log").read_text()[-2000:])
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def drop_recordings(self):
        pass

    def close(self):
        family = procs.descendants(self.pid)
        self.proc.send_signal(signal.SIGTERM)
        self.proc.wait(20)
        procs.kill(p for p in family
                   if os.path.basename(p.link("exe")) in self.programs)
        shutil.rmtree(self.dir, ignore_errors=True)


class Bench:
    """Everything that runs during a bench; `sizes` scales the measures."""

    def __init__(self, sizes):
        self.sizes = sizes
        self.berth = Berth()
        self.started = [self.berth]
        self.openssh = OpenSsh(self.berth.key)
        self.started.append(self.openssh)
        self._unrecorded = self._contained = None
        self._files = {}
        self.n_files = self.n_sockets = 0
        # anybody writes here: programs of both sides tell what they measured
        self.runs = self.openssh.dir / "runs"
        self.runs.mkdir()
        self.runs.chmod(0o777)

    def side(self, name):
        return {"berth": self.berth, "openssh": self.openssh}[name]

    @property
    def unrecorded(self):
        """A second berthd that records nothing, from when it is needed."""
        if self._unrecorded is None:
            self._unrecorded = Berth(is_recording=False)
            self.started.append(self._unrecorded)
        return self._unrecorded

    @property
    def contained(self):
        """One whose sandboxes are native, from when it is needed."""
        if self._contained is None:
            self._contained = Berth(access__default_template="bench",
                                    **{"template bench__provider": "native"})
            self.started.append(self._contained)
        return self._contained

    @property
    def log_file(self):
        """(path, bytes, lines) of log lines as programs write them."""
        return self.lines(self.sizes.pty_bytes)

    def lines(self, size):
        """The same, of about so many bytes."""
        if size not in self._files:
            path = self.berth.server.dir / f"lines-{size}.log"
            self._files[size] = (path, *write_log(path, size))
        return self._files[size]

    def colour_file(self, n_lines):
        """Path of so many lines of 80 columns in colours."""
        path = self.berth.server.dir / f"colours-{n_lines}.log"
        if not path.exists():
            write_colours(path, n_lines)
        return path

    def new_file(self, name):
        """Path of a file that is not there yet, for programs to write."""
        self.n_files += 1
        return self.runs / f"{name}{self.n_files}"

    def close(self):
        for server in reversed(self.started):
            server.close()


def write_log(path, size):
    """Colours, UTF-8 and lines of many lengths; returns (bytes, lines)."""
    block = []
    for i in range(4000):
        level = ("\033[32mINFO\033[0m", "INFO", "\033[33mWARN\033[0m",
                 "DEBUG")[i % 4]
        text = ("request done", "cache miss for key", "réponse reçue",
                "retrying after timeout", "worker started")[i % 5]
        block.append(
            f"2026-01-02T03:{i // 60 % 60:02}:{i % 60:02}.{i * 37 % 1000:03}Z"
            f" {level} [srv-{i % 16}] {text} id={i * 2654435761 % 2**32:08x}"
            f" took={i * 7919 % 9973 / 10:.1f}ms"
            f" path=/api/v1/items/{i * 31 % 5003}{'/part' * (i % 7)}\n")
    data = "".join(block).encode()
    times = max(1, size // len(data))
    with open(path, "wb") as f:
        for _ in range(times):
            f.write(data)
    path.chmod(0o644)
    return len(data) * times, len(block) * times


def write_colours(path, n_lines):
    """Logs as they look where every field has its colour."""
    with open(path, "w", encoding="utf-8") as f:
        for i in range(n_lines):
            level, colour = (("INFO", 32), ("DEBUG", 36), ("WARN", 33),
                             ("ERROR", 31))[i * 7 % 4]
            text = (f"id={i * 2654435761 % 2**32:08x} took={i % 9973}ms"
                    f" path=/api/v1/items/{i % 5003}/part/of/a/line")
            f.write(f"\033[90m{i // 3600 % 24:02}:{i // 60 % 60:02}:"
                    f"{i % 60:02}.{i * 37 % 1000:03}\033[0m"
                    f" \033[1;{colour}m{level:5}\033[0m"
                    f" \033[38;5;{i % 216 + 16}m[srv-{i % 16:02}]\033[0m"
                    f" {text[:52]:.<52}\n")
    path.chmod(0o644)
