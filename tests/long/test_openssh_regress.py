"""OpenSSH's own regress scripts against berth, as far as they can be pointed
at a server that is not theirs. They come with Debian's source package, are run
as they are, and find stand-ins for the programs that they start
(openssh_shim.py). BERTH_OPENSSH_SOURCE names an unpacked one; otherwise apt-get
fetches that of the installed client, and without it all of this is skipped.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

from berth import IS_ROOT, RELEASE, free_port, run  # noqa: E402

SHIM = pathlib.Path(__file__).with_name("openssh_shim.py")
PROGRAMS = ("berthd", "berth-sshd", "berth-session", "berth")
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ORDINARY_UID = 65534
CONFIG = "#define HAVE_OPENPTY 1\n"

# What of a script may fail: things that berth does not have, by what it prints.
SCRIPTS = {
    "broken-pipe": None,
    "brokenkeys": None,
    "connect": None,
    "connect-uri": None,
    "dynamic-forward": None,
    "envpass": "environment not found",  # SetEnv of sshd_config
    "exit-status": None,
    "exit-status-signal": None,
    "forwarding": None,
    "host-expand": None,
    "integrity": None,
    "kextype": None,
    "key-options": "environment|from=",  # environment=; -i has no address
    "keyscan": None,
    "keytype": None,
    "localcommand": None,
    "login-timeout": None,
    # Sockets of the Unix kind.
    "multiplex": "corrupted copy of|remote forward failed|forwarded path",
    "percent": None,
    # There is no -i, so a connection has its true ends; nor are there styles.
    "proxy-connect": r"^bad SSH_CONNECTION comp=\w+: +127\.0\.0\.1 \d+ "
                     r"127\.0\.0\.1 \d+$|^ssh proxyconnect failed$",
    "putty-ciphers": None,
    "putty-kex": None,
    "putty-transfer": None,
    # The server has no limit of time, and no -T.
    "rekey": r"^server rekeylimit default .*\nno rekeying occurred$"
             r"|rekeylimit size: .*",
    "scp": None,
    "scp-uri": None,
    "scp3": None,
    "sftp": None,
    "sftp-badcmds": None,
    "sftp-batch": None,
    "sftp-cmds": None,
    "sftp-glob": None,
    "sftp-uri": None,
    "stderr-after-eof": None,
    "stderr-data": None,
    "transfer": None,
    "try-ciphers": None,
    "yes-head": None,
}


def fetch(folder):
    """Unpacks the source package below FOLDER; None, or why it cannot be."""
    signed = f"[signed-by={KEYRING}]" if os.path.exists(KEYRING) else ""
    lists = folder / "lists"
    (lists / "partial").mkdir(parents=True)
    (folder / "cache/archives/partial").mkdir(parents=True)
    entries = run(
        ["apt-get", "indextargets", "--format",
         f"deb-src {signed} $(REPO_URI) $(RELEASE) $(COMPONENT)",
         "Created-By: Packages", "Origin: Debian"]
    ).stdout.decode()
    (folder / "sources.list").write_text(entries)
    apt = ["apt-get", "-q", "-o", f"Dir::State::lists={lists}",
           "-o", f"Dir::Cache={folder}/cache",
           "-o", f"Dir::Etc::sourcelist={folder}/sources.list",
           "-o", "Dir::Etc::sourceparts=/dev/null",
           "-o", "APT::Sandbox::User=root"]
    version = run(["dpkg-query", "-W", "-f", "${source:Version}",
                   "openssh-client"]).stdout.decode()
    for args in (
        [*apt, "update"],
        [*apt, "source", "--download-only", f"openssh={version}"],
    ):
        done = run(args, 300, cwd=folder)
        if done.returncode:
            return f"{args[-1]}: {done.stderr.decode().strip()[-200:]}"
    (dsc,) = folder.glob("*.dsc")
    done = run(["dpkg-source", "--no-check", "-x", dsc, folder / "openssh"],
               120, cwd=folder)
    return done.stderr.decode()[-200:] if done.returncode else None


@pytest.fixture(scope="module")
def regress():
    """The folder of the scripts."""
    given = os.environ.get("BERTH_OPENSSH_SOURCE")
    if given:
        yield pathlib.Path(given) / "regress"
        return
    folder = pathlib.Path(tempfile.mkdtemp(prefix="openssh-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        why = fetch(folder)
        if why:
            pytest.skip(f"explained: no source package of openssh: {why}")
        yield folder / "openssh/regress"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def obj():
    """A folder as the scripts expect their build's, of an ordinary user."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="or-", dir="/tmp"))
    folder.chmod(0o755)
    bins = folder / "bin"
    bins.mkdir()
    for name in PROGRAMS:
        shutil.copy(RELEASE / name, bins / name)
    shutil.copy(SHIM, bins / "shim.py")
    for role in ("sshd", "sftp-server", "scp", "ssh", "modpipe"):
        (bins / role).write_text(
            f'#!/bin/sh\nexec /usr/bin/python3 {bins}/shim.py {role} "$@"\n')
        (bins / role).chmod(0o755)
    (folder / "modpipe").symlink_to("bin/modpipe")
    (folder / "netcat").symlink_to("/usr/bin/nc")
    (folder / "mkdtemp").write_text('#!/bin/sh\nexec mktemp -d /tmp/"$1"\n')
    (folder / "mkdtemp").chmod(0o755)
    (folder / "config.h").write_text(CONFIG)
    if IS_ROOT:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, ORDINARY_UID, ORDINARY_UID, follow_symlinks=False)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def home_of(name, obj):
    """percent.sh compares HOME with what the client takes from passwd."""
    if name != "percent":
        return str(obj)
    uid = ORDINARY_UID if IS_ROOT else os.getuid()
    return run(["getent", "passwd", uid]).stdout.decode().split(":")[5]


def environment(name, obj):
    user = run(["id", "-un", str(ORDINARY_UID)]).stdout.decode().strip() \
        if IS_ROOT else run(["id", "-un"]).stdout.decode().strip()
    bins = obj / "bin"
    # Their file of data is a copy of it; sftp.sh moves 5 bytes at a time.
    agent = "/usr/bin/true" if name == "sftp" else "/usr/bin/ssh-agent"
    return {
        "PATH": os.environ["PATH"], "LC_ALL": "C", "USER": user,
        "LOGNAME": user, "HOME": home_of(name, obj), "BUILDDIR": str(obj),
        "REGRESS_OBJ": str(obj), "BERTH_BUILD": str(bins),
        "TEST_SHELL": "sh", "EGREP": "grep -E",
        "TEST_SSH_PORT": str(free_port()), "TEST_SSH_SSH": f"{bins}/ssh",
        "TEST_SSH_SSHD": f"{bins}/sshd", "TEST_SSH_SCP": f"{bins}/scp",
        "TEST_SSH_SFTPSERVER": f"{bins}/sftp-server",
        "TEST_SSH_SFTP": "/usr/bin/sftp", "TEST_SSH_SSHAGENT": agent,
        "TEST_SSH_PLINK": "plink", "TEST_SSH_PUTTYGEN": "puttygen",
        "TEST_SSH_UNSAFE_PERMISSIONS": "1",
    }


@pytest.mark.parametrize("name", SCRIPTS)
def test_regress(regress, obj, name):
    """It passes, or fails in nothing but what berth does not have."""
    script = regress / f"{name}.sh"
    if not script.exists():
        pytest.skip(f"explained: this OpenSSH has no {name}.sh")
    ordinary = ["setpriv", f"--reuid={ORDINARY_UID}",
                f"--regid={ORDINARY_UID}", "--clear-groups"]
    with (obj / "out").open("wb") as out:
        done = subprocess.run(
            [*(ordinary if IS_ROOT else []), "sh",
             regress / "test-exec.sh", obj, script],
            stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=obj,
            env=environment(name, obj), timeout=1800, check=False)
    text = (obj / "out").read_text("utf-8", "replace")
    if "SKIPPED" in text.splitlines()[-1]:
        pytest.skip(f"explained: {text.splitlines()[-1]}")
    allowed = SCRIPTS[name]
    if allowed is None:
        assert done.returncode == 0, text[-3000:]
        return
    log = obj / "failed-regress.log"
    failed = re.findall(r"^(?:FAIL|FATAL): (.*)", log.read_text(), re.M) \
        if log.exists() else []
    assert (done.returncode == 0) == (not failed), text[-3000:]
    said = " ".join(text.split())
    rest = " ".join(re.sub(allowed, "", text, flags=re.M).split())
    for message in (" ".join(f.split()) for f in failed):
        assert message in said and message not in rest, text[-3000:]
