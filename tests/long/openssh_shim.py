"""Stands in for the programs that OpenSSH's regress scripts start, so that
those scripts, as they are, meet berth: `sshd` is a berthd with the options of
an sshd_config that it has a word for, `sftp-server` the subsystem of a berthd,
`scp` its far end too. Whatever it starts ends with it.

Usage: openssh_shim.py sshd | sftp-server | scp | ssh | modpipe ARGUMENTS...
REGRESS_OBJ is the folder of the scripts, BERTH_BUILD that of berthd.
"""

import ctypes
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

OBJ = pathlib.Path(os.environ["REGRESS_OBJ"])
BUILD = pathlib.Path(os.environ["BERTH_BUILD"])
READY = re.compile(rb' ready\b.*addr="?127\.0\.0\.1:(\d+)')
SSH, SCP = "/usr/bin/ssh", "/usr/bin/scp"
PR_SET_PDEATHSIG = 1
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

# `ssh -Q` lists what the client has; scripts try it all on the server.
HAS = {
    "kex": re.compile(r"curve25519|ecdh|group1[46]-sha(256|512)"),
    "mac": re.compile(r"hmac-sha2"),
    "cipher": re.compile(r"gcm|chacha|ctr"),
    "key": re.compile(r"(ssh-rsa|ssh-ed25519|ecdsa-sha2-\w+|rsa-sha2-\w+)$"),
}


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Config:
    """What an sshd_config says, the first value of most words."""

    MANY = ("hostkey", "acceptenv")
    KEYS = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-")

    def __init__(self, path, extra):
        self.words = {}
        lines = [*extra, *pathlib.Path(path).read_text().splitlines()]
        for line in lines:
            found = re.match(r"\s*(\w+)[\s=]+(.*?)\s*$", line)
            if not found:
                continue
            key, value = found.group(1).lower(), found.group(2).strip('"\'')
            if key == "match":
                break
            if key in self.MANY:
                self.words.setdefault(key, []).append(value)
            else:
                self.words.setdefault(key, value)

    def get(self, key, default=None):
        return self.words.get(key, default)

    def authorized_keys(self):
        path = self.get("authorizedkeysfile", str(OBJ / "authorized_keys_%u"))
        return path.split()[0].replace("%u", os.environ.get("USER", "")) \
            .replace("%%", "%")

    def host_keys(self):
        """Those of a type that berth has."""
        made = []
        for path in self.get("hostkey", []):
            public = subprocess.run(
                ["ssh-keygen", "-y", "-f", path], capture_output=True,
                check=False).stdout.decode()
            if public.startswith(self.KEYS):
                made.append(path)
        return ",".join(made)

    def rekey_limit(self):
        words = self.get("rekeylimit", "").split()
        if not words or words[0] == "default":
            return "0"
        return words[0].replace("K", "k")

    def startups(self):
        return self.get("maxstartups", "100").split(":")[0]

    def render(self, home, listen):
        """A berth.conf, and keys without options that nobody here has."""
        accepted = " ".join(self.get("acceptenv", [])).split()
        return (
            f"[server]\nlisten = {listen}\n"
            f"state_dir = {home}/state\nruntime_dir = {home}/run\n"
            f"login_grace = {self.get('logingracetime', '120').rstrip('s')}s\n"
            f"max_auth_tries = {self.get('maxauthtries', '6')}\n"
            f"max_startups = {self.startups()}\nmax_per_source = 1000\n"
            f"rekey_limit = {self.rekey_limit()}\n"
            f"[access]\nauthorized_keys = {self.authorized_keys()}\n"
            f"default_role = writer\n"
            f"[sandbox]\ndir = {home}/boxes\n"
            f"[session]\non_shutdown = kill\nstop_grace = 1s\n"
            f"env_accept = {','.join(['TERM', 'LANG', 'LC_*', *accepted])}\n"
            f"[forward]\nlisten = *:*\n"
            f"[recording]\nmin_free = 1M\n"
        )


class Berthd:
    def __init__(self, config, listen, log):
        self.home = pathlib.Path(tempfile.mkdtemp(prefix="berthd-", dir=OBJ))
        self.home.chmod(0o700)
        conf = self.home / "berth.conf"
        conf.write_text(config.render(self.home, listen))
        conf.chmod(0o600)
        # The scripts empty their log whenever they like.
        self.own_log, self.log = self.home / "log", log
        with self.own_log.open("wb") as out:
            self.proc = subprocess.Popen(
                [BUILD / "berthd", "-c", conf,
                 "-o", f"server.host_key={config.host_keys()}"],
                stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd="/",
                start_new_session=True, preexec_fn=die_with_parent)
        self.port = self.wait_ready()

    def wait_ready(self):
        end = time.monotonic() + 20
        while time.monotonic() < end and self.proc.poll() is None:
            found = READY.search(self.own_log.read_bytes())
            if found:
                return int(found.group(1))
            time.sleep(0.01)
        self.stop()
        sys.exit("openssh_shim: berthd did not start")

    def stop(self):
        self.proc.send_signal(signal.SIGTERM)
        try:
            self.proc.wait(10)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        with open(self.log, "ab") as out:
            out.write(self.own_log.read_bytes())
        shutil.rmtree(self.home, ignore_errors=True)


class Stop(Exception):
    pass


def on_signal(number, _):
    for other in SIGNALS:
        signal.signal(other, signal.SIG_IGN)
    raise Stop(number)


def leave(berthd):
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if berthd:
        berthd.stop()


def relay(port):
    """Stdin and stdout are a connection, as of `sshd -i`."""
    far = socket.create_connection(("127.0.0.1", port))
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    near_in, near_out = sys.stdin.fileno(), sys.stdout.fileno()
    sources = {near_in, far.fileno()}
    while far.fileno() in sources:
        for fd in select.select(sources, [], [])[0]:
            data = os.read(fd, 1 << 18)
            if not data:
                sources.discard(fd)
            if fd == far.fileno():
                while data:
                    data = data[os.write(near_out, data):]
            elif data:
                far.sendall(data)
            else:
                far.shutdown(socket.SHUT_WR)


def sshd(args):
    options, path, log, is_inetd = [], OBJ / "sshd_config", None, False
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "-i":
            is_inetd = True
        elif arg in ("-t",):
            return 0
        elif arg[:2] in ("-f", "-o", "-E"):
            value = arg[2:] or rest.pop(0)
            if arg[:2] == "-f":
                path = value
            elif arg[:2] == "-E":
                log = value
            else:
                options.append(value)
        elif arg in ("-D", "-e", "-d", "-q"):
            pass
        else:
            sys.exit(f"openssh_shim: sshd {arg} means nothing to berth")
    config = Config(path, options)
    log = log or OBJ / "sshd.log"
    for number in SIGNALS:
        signal.signal(number, on_signal)
    if is_inetd:
        return serve_one(config, log)
    return serve(config, log)


def serve_one(config, log):
    berthd = None
    try:
        berthd = Berthd(config, "127.0.0.1:0", log)
        relay(berthd.port)
    except Stop:
        pass
    finally:
        leave(berthd)
    return 0


def serve(config, log):
    """In the background; PidFile says when, and until when, it listens."""
    if os.fork():
        return 0
    os.setsid()
    pid_file = pathlib.Path(config.get("pidfile"))
    berthd = None
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    try:
        berthd = Berthd(config, f"127.0.0.1:{config.get('port')}", log)
        pid_file.write_text(f"{os.getpid()}\n")
        while berthd.proc.poll() is None:
            time.sleep(0.2)
    except Stop:
        pass
    finally:
        leave(berthd)
        pid_file.unlink(missing_ok=True)
    return 0


def sftp_server(args):
    """What it logs is the only thing that may be asked otherwise. scp puts
    what it would say to ssh behind "--".
    """
    args = args[:args.index("--")] if "--" in args else args
    if [a for a in args if not re.fullmatch(r"-e|-l|[A-Z0-9]+", a)]:
        sys.exit(f"openssh_shim: sftp-server {args} is not berth's")
    os.execv(SSH, ["ssh", "-q", "-F", str(OBJ / "ssh_proxy"), "-s",
                   "somehost", "sftp"])


def scp(args):
    """Its far end (-t, -f) is a command of berth, like of any server."""
    flags = [a for a in args if re.fullmatch(r"-[a-zA-Z]+", a)]
    if not any(set(f) & set("tf") for f in flags):
        os.execv(SCP, ["scp", *args])
    os.execv(SSH, ["ssh", "-q", "-F", str(OBJ / "ssh_proxy"), "somehost",
                   " ".join(["scp", *args])])


def ssh(args):
    """The real one, but -Q names only what berth has too."""
    if "-Q" not in args:
        os.execv(SSH, ["ssh", *args])
    what = args[args.index("-Q") + 1]
    pattern = HAS.get(what.split("-")[0])
    done = subprocess.run([SSH, *args], stdout=subprocess.PIPE, check=False)
    for line in done.stdout.decode().splitlines():
        if not pattern or pattern.search(line):
            print(line)
    return done.returncode


def modpipe(args):
    """Standard input with one bit flipped, for `-wm xor:OFFSET:BIT`."""
    _, offset, bit = args[-1].split(":")
    left = int(offset)
    while data := os.read(0, 1 << 16):
        if 0 <= left < len(data):
            flipped = bytes([data[left] ^ int(bit)])
            data = data[:left] + flipped + data[left + 1:]
            left = -1
        left -= len(data) if left >= 0 else 0
        while data:
            data = data[os.write(1, data):]
    return 0


if __name__ == "__main__":
    ROLES = {"sshd": sshd, "sftp-server": sftp_server, "scp": scp,
             "ssh": ssh, "modpipe": modpipe}
    try:
        sys.exit(ROLES[sys.argv[1]](sys.argv[2:]))
    except Stop:
        pass  # while it was leaving; what it started hears of its end
