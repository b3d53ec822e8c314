"""Drives the real programs: one Server is one berthd with its own directory,
port, keys and log; stock clients talk to it. Every wait has a deadline and
ends as soon as its condition holds. What a Server started must be gone when
it stopped, and its log must be free of sanitizer reports.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/terminal"))

import procs  # noqa: E402
import terminal  # noqa: E402
from vt import Vt  # noqa: E402

BUILD = pathlib.Path(
    os.environ.get("BERTH_BUILD", ROOT / "build" / "asan")
).resolve()
# What is not confined is what users do not get: some tests want a release.
RELEASE = ROOT / "build"
IS_ROOT = os.geteuid() == 0
SANITIZER = re.compile(
    rb"ERROR: AddressSanitizer|runtime error:|LeakSanitizer"
    rb"|AddressSanitizer:DEADLYSIGNAL|Assertion .* failed"
)
DEADLINE = 30.0


class Failure(AssertionError):
    """A condition that did not come to hold; the text says what was seen."""


def wait_for(predicate, deadline=DEADLINE, what=None):
    """Returns the first true value of predicate(), or fails at the deadline."""
    end = time.monotonic() + deadline
    pause = 0.02
    while True:
        value = predicate()
        if value:
            return value
        if time.monotonic() > end:
            raise Failure(f"not within {deadline:g} s: {what or predicate}")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def run(args, timeout=DEADLINE, **kw):
    """subprocess.run with a deadline, bytes, and no stdin unless given."""
    if "input" not in kw:
        kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("stderr", subprocess.PIPE)
    proc = subprocess.Popen(
        [str(a) for a in args],
        stdin=subprocess.PIPE if "input" in kw else kw.pop("stdin"),
        stdout=kw.pop("stdout"),
        stderr=kw.pop("stderr"),
        env=kw.pop("env", None),
        cwd=kw.pop("cwd", None),
    )
    try:
        out, err = proc.communicate(kw.get("input"), timeout=timeout)
    except subprocess.TimeoutExpired:
        proc.kill()
        out, err = proc.communicate()
        raise Failure(
            f"hangs after {timeout:g} s: {args}\nstdout {(out or b'')[-400:]}"
            f"\nstderr {(err or b'')[-400:]}"
        ) from None
    return subprocess.CompletedProcess(args, proc.returncode, out, err)


def end(*children, deadline=10):
    """Kills and reaps children of the test itself."""
    for child in children:
        if child.poll() is None:
            child.kill()
    for child in children:
        child.wait(deadline)
        for pipe in (child.stdin, child.stdout, child.stderr):
            if pipe:
                try:
                    pipe.close()
                except OSError:
                    pass


def make_key(path, comment="someone"):
    """An ed25519 key pair; returns the private file's path."""
    run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", comment, "-f",
         path],
    ).check_returncode()
    return pathlib.Path(path)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


DEFAULTS = {
    "server.listen": "127.0.0.1:0",
    "server.max_startups": "1000",
    "server.max_per_source": "1000",
    "session.stop_grace": "1s",
    "session.on_shutdown": "kill",
    "access.default_template": "local",
    "recording.min_free": "1M",
    "recording.flush": "100ms",
}


class Server:
    """One berthd. Options are `section__key="value"`; None leaves one out."""

    def __init__(self, start=True, prefix=(), umask=None, build=BUILD,
                 **options):
        self.build = build
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="bb-", dir="/tmp"))
        self.dir.chmod(0o711)
        self.state = self.dir / "state"
        self.runtime = self.dir / "run"
        self.boxes = self.dir / "boxes"
        self.snapshots = self.state / "snapshots"
        self.log_path = self.dir / "log"
        self.conf = self.dir / "berth.conf"
        self.keys_path = self.dir / "authorized_keys"
        self.known_hosts = self.dir / "known_hosts"
        self.socket = self.runtime / "control.sock"
        self.public = self.dir / "pub"
        self.public.mkdir()
        self.public.chmod(0o1777)
        self.prefix, self.umask = list(prefix), umask
        self.bin = build
        self.options = dict(DEFAULTS)
        self.options.update(
            {
                "server.state_dir": self.state,
                "server.runtime_dir": self.runtime,
                "sandbox.dir": self.boxes,
                "access.authorized_keys": self.keys_path,
            }
        )
        for key, value in options.items():
            self.options[key.replace("__", ".")] = value
        self.key = make_key(self.dir / "key", "tester")
        self.write_keys(self.key_line(self.key, 'role="owner",admin'))
        self.proc = None
        self.port = None
        self.seen = 0  # bytes of the log that were searched for reports
        self.mark = 0  # where the running test's part of the log begins
        self.clients = []
        self.write_conf()
        if start:
            self.start()

    # ---- configuration ----------------------------------------------------

    def write_conf(self):
        sections = {}
        for name, value in self.options.items():
            if value is not None:
                section, key = name.rsplit(".", 1)
                sections.setdefault(section, []).append(f"{key} = {value}")
        text = "".join(
            f"[{section}]\n" + "\n".join(rows) + "\n\n"
            for section, rows in sections.items()
        )
        self.conf.write_text(text)
        self.conf.chmod(0o600)

    def key_line(self, key, options=""):
        public = pathlib.Path(f"{key}.pub").read_text().strip()
        return f"{options} {public}".strip()

    def write_keys(self, *lines):
        """Replaces authorized_keys whole, as an editor does."""
        new = self.keys_path.with_suffix(".new")
        new.write_text("\n".join(lines) + "\n")
        new.chmod(0o600)
        new.rename(self.keys_path)

    def add_key(self, comment, options=""):
        key = make_key(self.dir / f"key-{comment}", comment)
        with self.keys_path.open("a") as f:
            f.write(self.key_line(key, options) + "\n")
        return key

    # ---- life -------------------------------------------------------------

    def start(self, deadline=DEADLINE):
        with self.log_path.open("ab") as log:
            start = self.log_path.stat().st_size
            self.proc = subprocess.Popen(
                self.prefix + [str(self.bin / "berthd"), "-c", str(self.conf)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                umask=-1 if self.umask is None else self.umask,
            )
        wait_for(
            lambda: self.find_ready(start) or self.proc.poll() is not None,
            deadline,
            "event ready in the log",
        )
        if not self.find_ready(start):
            raise Failure(f"berthd ended at once:\n{self.log()[-3000:]}")
        self.port = self.find_ready(start)
        public = self.state / "ssh_host_ed25519_key.pub"
        if public.exists():
            kind, blob = public.read_text().split()[:2]
            self.known_hosts.write_text(
                f"[127.0.0.1]:{self.port} {kind} {blob}\n"
            )

    def find_ready(self, start=0):
        found = re.search(
            r' ready\b.*addr="?127\.0\.0\.1:(\d+)', self.log()[start:]
        )
        return int(found.group(1)) if found else None

    def log(self):
        try:
            return self.log_path.read_bytes().decode("utf-8", "replace")
        except OSError:
            return ""

    def check_log(self):
        """Fails if a sanitizer reported anything since the last look."""
        text = self.log_path.read_bytes() if self.log_path.exists() else b""
        new, self.seen = text[self.seen:], len(text)
        found = SANITIZER.search(new)
        if found:
            at = max(0, found.start() - 300)
            report = new[at: at + 6000].decode("utf-8", "replace")
            raise Failure(f"sanitizer report in the server log:\n{report}")

    def is_running(self):
        return self.proc is not None and self.proc.poll() is None

    def stop(self, deadline=20):
        """SIGTERM; returns berthd's exit status."""
        self.proc.send_signal(signal.SIGTERM)
        try:
            return self.proc.wait(deadline)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait(10)
            raise Failure(f"berthd is still there {deadline} s after SIGTERM")

    def install(self, version=None):
        """Programs of this server's own, as a package manager replaces them;
        with another version string, if one (as long as the true one) is named.
        """
        self.bin = self.dir / "bin"
        self.bin.mkdir(exist_ok=True)
        true = run([self.build / "berthd", "--version"]).stdout.split()[1]
        for name in ("berthd", "berth-sshd", "berth-session",
                     "berth-sandbox", "berth-archive"):
            data = (self.build / name).read_bytes()
            if version:
                assert len(version) == len(true)
                data = data.replace(true, version.encode())
            new = self.bin / f"{name}.new"
            new.write_bytes(data)
            new.chmod(0o755)
            new.rename(self.bin / name)

    def kill(self):
        """SIGKILL, as an out-of-memory killer sends it."""
        self.proc.kill()
        self.proc.wait(20)

    def close(self):
        """Stops everything and fails if anything stays behind."""
        errors = []
        for client in self.clients:
            client.close()
        if self.proc is not None:
            errors += self.close_daemon()
        try:
            self.check_log()
        except Failure as e:
            errors.append(str(e))
        tail = self.log()[-6000:]
        shutil.rmtree(self.dir, ignore_errors=True)
        if errors:
            raise Failure("\n".join(errors) + f"\nserver log:\n{tail}")

    def close_daemon(self):
        errors = []
        family = procs.descendants(self.proc.pid)
        if self.is_running():
            try:
                status = self.stop()
                if status != 0:
                    errors.append(f"berthd ended with {status}")
            except Failure as e:
                errors.append(str(e))

        def strays():
            return procs.strays(str(self.dir), self.build, family)

        try:
            wait_for(lambda: not strays(), 15, "nobody left")
        except Failure:
            left = strays()
            errors += [f"process left: {p}" for p in left]
            procs.kill(left)
        errors += [f"socket left: {s}" for s in procs.unix_sockets(self.dir)]
        return errors

    # ---- clients ----------------------------------------------------------

    def ssh_args(self, user, *opts, key=None, agent=False):
        """Argument list up to the host; append the command to it."""
        if agent:
            identity = ["-o", "IdentityFile=none"]
        else:
            identity = [
                "-i", str(key or self.key),
                "-o", "IdentitiesOnly=yes",
                "-o", "IdentityAgent=none",
            ]
        return [
            "ssh", "-F", "none", *identity,
            "-o", "BatchMode=yes",
            "-o", f"UserKnownHostsFile={self.known_hosts}",
            "-o", "GlobalKnownHostsFile=/dev/null",
            "-o", "StrictHostKeyChecking=accept-new",
            "-o", "UpdateHostKeys=no",
            "-o", "ConnectTimeout=60",
            "-p", str(self.port),
            *opts, "-l", user, "127.0.0.1",
        ]

    def ssh(self, user, command=None, opts=(), key=None, timeout=DEADLINE,
            **kw):
        """Runs a client to its end; returncode, stdout, stderr."""
        args = self.ssh_args(user, *opts, key=key)
        if command is not None:
            args.append(command)
        return run(args, timeout, **kw)

    def out(self, user, command, **kw):
        """The stdout of a command that must succeed."""
        done = self.ssh(user, command, **kw)
        if done.returncode != 0:
            raise Failure(f"{command!r}: {done.returncode} {done.stderr!r}")
        return done.stdout.decode()

    def spawn(self, user, command=None, opts=(), key=None, **kw):
        """A client as Popen, for tests that kill, stop or feed it."""
        args = self.ssh_args(user, *opts, key=key)
        if command is not None:
            args.append(command)
        kw.setdefault("stdin", subprocess.DEVNULL)
        kw.setdefault("stdout", subprocess.PIPE)
        kw.setdefault("stderr", subprocess.PIPE)
        child = subprocess.Popen(args, **kw)
        self.clients.append(_Child(child))
        return child

    def term(self, user, *opts, command=None, key=None, cols=80, rows=24,
             env=None, deadline=DEADLINE):
        """A person at a terminal: `ssh -tt` under its own PTY."""
        args = self.ssh_args(user, "-tt", *opts, key=key)
        if command is not None:
            args.append(command)
        term = Term(args, cols, rows, env, deadline)
        self.clients.append(term)
        return term

    def terminal(self, user, *opts, command=None, key=None, cols=80, rows=24,
                 env=None, delay=0.0, deadline=DEADLINE):
        """The same, and the terminal shows a screen and answers queries."""
        args = self.ssh_args(user, "-tt", *opts, key=key)
        if command is not None:
            args.append(command)
        term = terminal.Terminal(args, cols, rows, env, delay, deadline)
        self.clients.append(term)
        return term

    # ---- administration ---------------------------------------------------

    def berth(self, *args, timeout=DEADLINE, **kw):
        return run(
            [self.build / "berth", "-S", self.socket, *args], timeout, **kw
        )

    def berth_ok(self, *args, **kw):
        done = self.berth(*args, **kw)
        if done.returncode != 0:
            raise Failure(f"berth {args}: {done.returncode} {done.stderr!r}")
        return done.stdout.decode()

    def json(self, *args):
        return json.loads(self.berth_ok(*args, "--json"))

    def sessions(self, box, everything=False):
        rows = self.json("ls", *(["-a"] if everything else []))
        return [r for r in rows if r["sandbox"] == box]

    def session(self, box, deadline=DEADLINE):
        """The one live session of a sandbox, once it runs."""
        return wait_for(
            lambda: next(
                (r for r in self.sessions(box) if r["status"] == "running"),
                None,
            ),
            deadline,
            f"a running session in {box}",
        )

    def sql(self, query):
        done = run(
            ["sqlite3", "-readonly", "-json", "-cmd", ".timeout 5000",
             self.state / "berth.db", query]
        )
        if done.returncode != 0:
            raise Failure(f"{query}: {done.stderr!r}")
        return json.loads(done.stdout) if done.stdout.strip() else []

    def row(self, box, name=None, deadline=DEADLINE):
        """The ended session of a sandbox as the store has it."""
        extra = f" AND s.name = '{name}'" if name else ""
        query = (
            "SELECT s.* FROM session s JOIN sandbox b ON b.id = s.sandbox_id"
            f" WHERE b.name = '{box}'{extra} AND s.exited_ms IS NOT NULL"
            " ORDER BY s.created_ms DESC LIMIT 1"
        )
        return wait_for(
            lambda: next(iter(self.sql(query)), None), deadline,
            f"an ended session of {box}",
        )

    def recording(self, box, state=None, deadline=DEADLINE):
        """The newest recording of a sandbox, in that state if one is named."""
        query = (
            "SELECT r.* FROM recording r JOIN session s ON s.id ="
            " r.session_id JOIN sandbox b ON b.id = s.sandbox_id WHERE"
            f" b.name = '{box}'"
            + (f" AND r.state = '{state}'" if state else "")
            + " ORDER BY r.id DESC LIMIT 1"
        )
        return wait_for(
            lambda: next(iter(self.sql(query)), None), deadline,
            f"a recording of {box} in state {state}",
        )


class _Child:
    """A Popen that the server's close() ends if the test did not."""

    def __init__(self, child):
        self.child = child

    def close(self):
        end(self.child)


class Term:
    """A client under a PTY. A thread reads what it prints, so that nobody is
    slow by accident; `slow` makes it slow on purpose.
    """

    def __init__(self, args, cols=80, rows=24, env=None, deadline=DEADLINE):
        self.master, slave = os.openpty()
        self.slow = 0.0
        self.deadline = deadline
        self.data = bytearray()
        self.at = 0
        self.vt, self.shown, self.sizes = Vt(cols, rows), 0, []
        self.lock = threading.Lock()
        self.resize(cols, rows)
        self.proc = subprocess.Popen(
            ["setsid", "-c", *args], stdin=slave, stdout=slave, stderr=slave,
            env={**os.environ, "TERM": "xterm", **(env or {})},
            start_new_session=False,
        )
        os.close(slave)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        while True:
            try:
                chunk = os.read(self.master, 65536)
            except OSError:
                return
            if not chunk:
                return
            with self.lock:
                self.data += chunk
            if self.slow:
                time.sleep(self.slow)

    def resize(self, cols, rows):
        self.sizes.append((len(self.text), cols, rows))
        procs.set_size(self.master, cols, rows)

    def screen(self):
        """What its terminal shows now, as a model (tests/terminal/vt.py)."""
        text = self.text
        for at, cols, rows in self.sizes:
            self.vt.feed(text[self.shown:at])
            self.vt.resize(cols, rows)
            self.shown = at
        self.sizes = []
        self.vt.feed(text[self.shown:])
        self.shown = len(text)
        return self.vt

    @property
    def text(self):
        with self.lock:
            return bytes(self.data)

    def send(self, data):
        if isinstance(data, str):
            data = data.encode()
        while data:
            data = data[os.write(self.master, data):]

    def expect(self, pattern, deadline=None):
        """The match of a regular expression in what was not consumed yet."""
        if isinstance(pattern, str):
            pattern = pattern.encode()
        regex = re.compile(pattern, re.S)

        def look():
            with self.lock:
                return regex.search(bytes(self.data), self.at)

        try:
            found = wait_for(look, deadline or self.deadline, pattern)
        except Failure as e:
            raise Failure(f"{e}; printed: {self.text[-800:]!r}") from None
        self.at = found.end()
        return found

    def ready(self):
        """Waits until the shell answers."""
        self.send("echo rea''dy_$((40+2))\r")
        self.expect(rb"ready_42\r?\n")
        return self

    def wait(self, deadline=None):
        """The client's exit status."""
        try:
            status = self.proc.wait(deadline or self.deadline)
        except subprocess.TimeoutExpired:
            raise Failure(f"client hangs; printed {self.text[-800:]!r}")
        self.reader.join(5)
        return status

    def kill(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)

    def close(self):
        if self.proc.poll() is None:
            self.proc.send_signal(signal.SIGCONT)
            self.proc.kill()
        self.proc.wait(10)
        self.reader.join(5)
        if self.master >= 0:
            os.close(self.master)
            self.master = -1
