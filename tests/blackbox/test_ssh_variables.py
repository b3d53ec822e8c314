"""SSH_CONNECTION, SSH_CLIENT and SSH_TTY: as OpenSSH's sshd sets them, for the
processes of one connection and no others, whatever the client asks for.
"""

import re
import subprocess

import pytest

import procs
from berth import end, run, wait_for
from files import options

SPOOF = ["-o", "SetEnv=SSH_CONNECTION=a SSH_CLIENT=b SSH_TTY=c SSH_X=d"]
BOTH = {"SSH_CONNECTION", "SSH_CLIENT"}


def variables(text):
    """What of `env` has to do with SSH."""
    return dict(re.findall(r"^(SSH_\w+)=(.*?)\r?$", text, re.M))


def check_ends(srv, told, host="127.0.0.1"):
    """The port is that of the client's socket, which the log names too."""
    shown = f"[{host}]" if ":" in host else host
    assert set(told) == BOTH
    where, port, *own = told["SSH_CONNECTION"].split(" ")
    assert (where, own) == (host, [host, str(srv.port)])
    assert f"{shown}:{port}" in re.findall(
        r" accepted\b.*? addr=\"?([^ \"]+)", srv.log())
    assert told["SSH_CLIENT"] == f"{host} {port} {srv.port}"


def test_a_command_has_both_ends_and_no_tty(fresh, box):
    """Also where any variable at all is taken from clients."""
    srv = fresh(session__env_accept="*")
    check_ends(srv, variables(srv.out(box, "env", opts=SPOOF)))


def test_a_command_with_a_terminal_has_its_name(srv, box):
    done = srv.ssh(box, "tty; env", ["-tt", *SPOOF])
    text = done.stdout.decode()
    told = variables(text)
    tty = told.pop("SSH_TTY")
    assert re.fullmatch(r"/dev/pts/\d+", tty)
    assert text.splitlines()[0] == tty
    check_ends(srv, told)


def test_a_private_shell_has_them(srv, box):
    done = srv.ssh(f"{box}+exec", opts=["-T"], input=b"env\n")
    check_ends(srv, variables(done.stdout.decode()))
    term = srv.term(f"{box}+exec")
    term.send("test $SSH_TTY = $(tty) && echo sa''me\r")
    term.expect(rb"same\r?\n")
    term.send("exit\r")
    assert term.wait() == 0


def test_a_forced_command_has_them(srv, box):
    key = srv.add_key(f"f{box}", 'command="env"')
    told = variables(srv.out(box, "asked for", key=key))
    assert told.pop("SSH_ORIGINAL_COMMAND") == "asked for"
    check_ends(srv, told)


def test_sftp_server_has_them(srv, box):
    with subprocess.Popen(
            ["sftp", "-q", *options(srv), f"{box}@127.0.0.1"],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL) as child:
        try:
            found = wait_for(lambda: [
                p for p in procs.descendants(srv.proc.pid)
                if p.comm == "sftp-server"])
            with open(f"/proc/{found[0].pid}/environ", "rb") as f:
                text = f.read().decode().replace("\0", "\n")
        finally:
            end(child)
    check_ends(srv, variables(text))


def test_a_shared_session_has_none(srv, box):
    """Its shell outlives whoever made it, and others come from elsewhere."""
    term = srv.term(box, *SPOOF).ready()
    term.send("env | grep -c ^SSH; echo do''ne\r")
    term.expect(rb"\r0\r?\ndone")
    term.send("exit\r")
    term.wait()
    srv.berth_ok("new", "-s", box, "-n", "made", "--", "sh", "-c",
                 "env; sleep 60")
    told = wait_for(lambda: srv.berth_ok("tail", f"{box}+made"))
    assert "BERTH_SANDBOX=" in told and not variables(told)


@pytest.mark.skipif(
    b"::1" not in run(["ip", "-6", "addr", "show", "lo"]).stdout,
    reason="explained: the loopback has no IPv6")
def test_the_ends_of_ipv6(fresh, box):
    srv = fresh(server__listen="127.0.0.1:0, [::1]:0")
    found = wait_for(lambda: re.search(r"\[::1\]:(\d+)", srv.log()))
    srv.port = int(found.group(1))
    args = srv.ssh_args(box)
    args[args.index("127.0.0.1")] = "::1"
    done = run([*args, "env"])
    check_ends(srv, variables(done.stdout.decode()), "::1")


def test_an_upgrade_keeps_them(fresh, box):
    """The ends of a connection are among what one berthd leaves the next."""
    srv = fresh()
    path = srv.dir / "mux"
    mux = ["-o", "ControlMaster=auto", "-o", f"ControlPath={path}",
           "-o", "ControlPersist=60"]
    before = variables(srv.out(box, "env", opts=mux))
    srv.berth_ok("upgrade")
    assert variables(srv.out(box, "env", opts=mux)) == before
    check_ends(srv, before)
    run(["ssh", "-O", "exit", "-o", f"ControlPath={path}", "x"])
