"""Sandboxes that an engine's client reaches, by commands of the configuration.
The engine is tests/blackbox/fake_engine.py, which plays docker with processes
of this machine; what real ones do is in tests/long/test_engines.py.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

import files
from berth import BUILD, Term, free_port, run, wait_for

HERE = pathlib.Path(__file__).parent
ENGINE = pathlib.Path(tempfile.mkdtemp(prefix="berth-engine-"))

PROVIDERS = HERE.parent.parent / "conf" / "providers"

COMMANDS = {
    "program": str(HERE / "fake_engine.py"),
    "env": f"FAKE_ENGINE={ENGINE}",
    "image": "plain",
    "home": "/tmp",
    "shell": "/bin/bash",
    "sftp_server": "/usr/lib/openssh/sftp-server",
    "network_loopback": "lonely",
    "create": "{program} create box-{name} --memory={memory?} "
              "--cpus={cpus?} {image} \"two words\" 'as {is}' \\{x}",
    "start": "{program} start box-{name}",
    "stop": "{program} stop box-{name}",
    "remove": "{program} rm box-{name}",
    "status": "{program} status box-{name}",
    "suspended": "paused",
    "pending": "starting",
    "exec": "{program} exec box-{name} {leader}",
    "exec_tty": "{program} exec-tty box-{name} {leader}",
    "signal": "{program} kill box-{name} {signal}",
    "suspend": "{program} pause box-{name}",
    "resume": "{program} unpause box-{name}",
    "metrics": "{program} exec box-{name} {measure}",
    "forward": "{program} exec box-{name} nc -N {host} {port}",
    "logs": "{program} logs --follow={follow?} --tail={tail?} "
            "--timestamps={timestamps?} box-{name}",
    "timeout": "3s",
    "create_timeout": "4s",
    "poll": "500ms",
}

HOME = ENGINE / "home"  # of all sandboxes of the provider copier

SERVER = {
    "access__default_template": "fake",
    **{f"provider copier__{key}": value for key, value in COMMANDS.items()},
    "provider copier__home": HOME,
    "provider copier__snapshot": "{program} exec box-{name} {pack}",
    "provider copier__restore": "{program} exec box-{name} {unpack}",
    "session__stop_grace": "1s",
    **{f"provider fake__{key}": value for key, value in COMMANDS.items()},
    "template plain__provider": "local",
    "template copier__provider": "copier",
    "template begun__provider": "fake",
    "template begun__init": "echo begun in $(pwd)",
    "template begun__env": "INIT=yes",
    "template large__provider": "fake",
    "template large__memory": "1G",
    "template large__cpu": "150",
    "template large__image": "big:1",
    "template elsewhere__provider": "fake",
    "template elsewhere__network": "host",
}


@pytest.fixture(autouse=True, scope="session")
def engine_runs():
    child = subprocess.Popen([HERE / "fake_engine.py", "daemon"],
                             env={"FAKE_ENGINE": str(ENGINE)})
    wait_for(lambda: (ENGINE / "engine.sock").exists())
    yield
    child.kill()
    child.wait()
    shutil.rmtree(ENGINE, ignore_errors=True)


@pytest.fixture(autouse=True)
def engine_behaves(request):
    """And sandboxes do not pile up, which would all be looked at."""
    wanted = {"srv", "box"} <= set(request.fixturenames)
    srv, box = (request.getfixturevalue(name) if wanted else None
                for name in ("srv", "box"))
    yield
    if wanted:
        srv.berth("sandbox", "rm", box)
    for path in ENGINE.glob("*"):
        if path.name not in ("sandboxes", "argv.log", "input", "engine.sock",
                             "home"):
            path.unlink()


def misbehave(operation, how):
    (ENGINE / operation).write_text(how)


def calls(operation=None):
    log = (ENGINE / "argv.log").read_text().splitlines()
    found = [json.loads(line) for line in log]
    return [c for c in found if operation in (None, c[0])]


def state(box):
    path = ENGINE / "sandboxes" / f"box-{box}"
    return path.read_text() if path.exists() else None


def phase(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0]["state"] if rows else None


def inside(box):
    """Who runs in a sandbox, as {pid: command}."""
    mark = f"\0FAKE_BOX=box-{box}\0".encode()
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if mark in b"\0" + (entry / "environ").read_bytes():
                words = (entry / "cmdline").read_bytes().split(b"\0")
                found[int(entry.name)] = b" ".join(words).decode().strip()
        except (OSError, ValueError):
            pass
    return found


def stored(srv, box, name="s"):
    """The newest session of that name, whether it has ended or not."""
    return [r for r in srv.sessions(box, True) if r["name"] == name][0]


def runs(box, text):
    return [pid for pid, command in inside(box).items() if text in command]


# ---- configuration -----------------------------------------------------------


BAD = {
    "create = x {nme}": "create: {nme} is not a placeholder here",
    "create = x {leader}": "create: {leader} is not a placeholder here",
    "create = x {name": "is not closed",
    "exec = x a{leader}": "{leader} is several words and stands alone",
    "signal = x {signal} y": "does not end in {signal}",
    "create = x 'y": "a quote is not closed",
    "status =": "status: is missing",
    "suspend = x": "suspend and resume need each other",
    "snapshot = x": "snapshot and restore need each other",
    "timeout = 1": "is not a time",
    "type = module": "there is only: command",
    "colour = red": "unknown key",
}


@pytest.mark.parametrize("line", BAD)
def test_a_wrong_command_is_refused_when_the_configuration_is_read(
        tmp_path, line):
    """A typing error in a command shows at the start, with its line, and not
    when the first user comes."""
    good = {"create": "x", "remove": "x", "status": "x", "exec": "x {leader}",
            "exec_tty": "x {leader}"}
    good.pop(line.split(" =")[0], None)
    rows = [f"{k} = {v}" for k, v in good.items()] + [line]
    conf = tmp_path / "berth.conf"
    conf.write_text("[provider p]\n" + "\n".join(rows) + "\n")
    done = run([BUILD / "berthd", "-t", "-c", conf])
    assert done.returncode == 1
    assert BAD[line] in done.stderr.decode(), done.stderr


def test_files_of_providers_are_read_and_the_main_file_wins(tmp_path):
    """Who includes docker.conf says in the main file what is different here."""
    (tmp_path / "p.conf").write_text(
        "[provider p]\nimage = theirs\nshell = /bin/ash\ncreate = x\n"
        "\ty {name}\nremove = x\nstatus = x\nexec = x {leader}\n"
        "exec_tty = x {leader}\n[template t]\nprovider = p\n")
    conf = tmp_path / "berth.conf"
    conf.write_text("[sandbox]\nproviders = p.conf\n[access]\n"
                    "default_template = t\n[provider p]\nimage = ours\n")
    done = run([BUILD / "berthd", "--show-config", "-c", conf])
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode()
    assert "image = ours\n" in shown and "theirs" not in shown
    assert "shell = /bin/ash\n" in shown
    assert "create = x\n\ty {name}\n" in shown
    (tmp_path / "p.conf").write_text("[server]\nlisten = 0.0.0.0:22\n")
    done = run([BUILD / "berthd", "-t", "-c", conf])
    assert b"p.conf:1: server: only providers and templates" in done.stderr


@pytest.mark.parametrize("name", ["docker", "podman", "lxd", "kubernetes"])
def test_the_shipped_providers_load(tmp_path, name):
    """What is installed is right word by word."""
    shipped = PROVIDERS / f"{name}.conf"
    conf = tmp_path / "berth.conf"
    conf.write_text(f"[sandbox]\nproviders = {shipped}\n[access]\n"
                    f"default_template = {name}\n")
    done = run([BUILD / "berthd", "-t", "-c", conf])
    assert done.returncode == 0, done.stderr


def connect(port):
    try:
        return socket.create_connection(("127.0.0.1", port), 20)
    except OSError:
        return None


KUBECTL = """#!/bin/sh
printf '%s\\n' "$*" | head -1 >>"$KUBE/log"
case $1 in
apply) cat >"$KUBE/claim" ;;
get) [ ! -f "$KUBE/claim" ] || echo "claim:True pod-7" ;;
delete) rm -f "$KUBE/claim" ;;
exec) while [ "$1" != -- ]; do shift; done; shift; exec "$@" ;;
esac
"""


def test_kubernetes_is_asked_for_the_right_things(fresh, box, tmp_path):
    """No cluster is here; what kubectl would be told is looked at."""
    kubectl = ENGINE / "kubectl-recorder"
    kubectl.write_text(KUBECTL)
    kubectl.chmod(0o755)
    srv = fresh(**{
        "sandbox__providers": PROVIDERS / "kubernetes.conf",
        "access__default_template": "kubernetes",
        "provider kubernetes__program": kubectl,
        "provider kubernetes__env": f"KUBE={tmp_path}",
        "provider kubernetes__sftp_server": "none",
    })
    name = "berth-" + box.lower().replace("_", "-")
    assert srv.ssh(box, "echo in; exit 4").returncode == 4
    claim = (tmp_path / "claim").read_text().splitlines()
    assert f"  name: {name}" in claim and claim[-1] == "    name: berth"
    log = (tmp_path / "log").read_text().splitlines()
    assert log[0].startswith(
        f"get sandboxclaim {name} --ignore-not-found --output=jsonpath=claim:{{"
    )
    assert log[1] == "apply --filename=-"
    assert any(x.startswith("exec --stdin pod-7 -- /bin/sh -c ") for x in log)
    done = srv.berth("sandbox", "snapshot", box)
    assert b"its home is the whole system" in done.stderr
    log = (tmp_path / "log").read_text().splitlines()
    assert log[-1].startswith("exec pod-7 -- /bin/sh -c cd ")
    srv.berth_ok("sandbox", "rm", box)
    log = (tmp_path / "log").read_text().splitlines()
    assert (f"delete sandboxclaim {name} --ignore-not-found --wait=false"
            in log)


# ---- what a channel does -------------------------------------------------------


def test_exec_passes_streams_code_and_environment(srv, box):
    """A command in an engine's sandbox is as one anywhere."""
    done = srv.ssh(box, "cat; echo err >&2; exit 7", input=b"in\0\xff")
    assert (done.returncode, done.stdout) == (7, b"in\0\xff")
    assert done.stderr == b"err\n"
    out = srv.out(box, 'echo "$HOME,$USER,$SHELL,$(pwd),$BERTH_SANDBOX,$IMAGE,'
                       '$PATH,$FAKE_ENGINE,${berth_s-none}"')
    assert out.strip() == (f"/tmp,root,/bin/bash,/tmp,{box},yes,"
                           "/usr/local/bin:/usr/bin:/bin,,none")
    assert srv.ssh(box, "no-such-program").returncode == 127
    made = calls("create")[-1]
    assert made[1:] == [f"box-{box}", "plain", "two words", "as {is}", "{x}"]


def test_words_of_users_stay_words(srv, box):
    """Nothing that a user sends is read by a shell of this host."""
    text = "$(touch /tmp/berth-pwned) `id` ; {name} \"'\\ *"
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--no-pty", "--", "printf",
                 "%s|", text, "-x", "")
    wait_for(lambda: stored(srv, box)["status"] == "exited")
    asked = [c for c in calls("exec") if c[1] == f"box-{box}"][-1]
    assert asked[-4:] == ["%s|", text, "-x", ""]
    assert not pathlib.Path("/tmp/berth-pwned").exists()


def test_a_terminal_has_size_keys_and_job_control(srv, box):
    """The keeper's terminal is outside, the engine's inside; who types must not
    notice that there are two."""
    term = srv.term(box).ready()
    term.send("tty; stty size\r")
    term.expect(r"/dev/pts/\d+\r\n24 80")
    term.resize(100, 30)
    term.send("sleep .5; stty size\r")
    term.expect("30 100")
    term.send("sleep 1000\r")
    wait_for(lambda: runs(box, "sleep 1000"))
    term.send("\x03")
    term.send("echo back=$?\r")
    term.expect("back=130")
    term.send("exit 5\r")
    assert term.wait() == 5


def test_a_login_shell_is_one(srv, box):
    term = srv.term(box).ready()
    term.send("shopt -q login_shell && echo yes-login\r")
    term.expect("yes-login\r")
    term.send("exit\r")
    term.wait()


def test_end_of_input_arrives(srv, box):
    done = srv.ssh(box, "wc -c", input=b"x" * 300_000)
    assert done.stdout.strip() == b"300000"


@pytest.mark.parametrize("name", ["TERM", "HUP", "INT", "USR1"])
def test_signals_arrive_inside(srv, box, name):
    """The client's end is not the process's, so signals have to go inside."""
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--no-pty", "--", "bash", "-c",
                 f"trap 'echo got-{name}; exit 9' {name}; echo set; "
                 "while :; do sleep .1; done")
    wait_for(lambda: "set" in srv.berth_ok("tail", f"{box}+s"))
    srv.berth_ok("kill", f"{box}+s", f"-{name}")
    wait_for(lambda: stored(srv, box)["status"] == "exited")
    assert stored(srv, box)["exit_code"] == 9
    wait_for(lambda: not inside(box))


def test_a_signal_that_ends_the_process_is_told_as_one(srv, box):
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--no-pty", "--", "sleep",
                 "1000")
    wait_for(lambda: runs(box, "sleep 1000"))
    srv.berth_ok("kill", f"{box}+s", "-TERM")
    wait_for(lambda: stored(srv, box)["status"] == "killed")
    assert stored(srv, box)["exit_signal"] == "TERM"
    wait_for(lambda: not inside(box))


@pytest.mark.parametrize("pty", ["--no-pty", None])
def test_kill_reaches_the_process_inside(srv, box, pty):
    """KILL cannot be passed on: whoever would is dead. Nothing may stay."""
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", *([pty] if pty else []), "--",
                 "bash", "-c", "trap '' HUP TERM INT; sleep 1000 & sleep 1001")
    wait_for(lambda: runs(box, "sleep 1000") and runs(box, "sleep 1001"))
    srv.berth_ok("kill", f"{box}+s", "-KILL")
    wait_for(lambda: stored(srv, box)["status"] == "killed")
    assert stored(srv, box)["exit_signal"] == "KILL"
    wait_for(lambda: not inside(box))


def test_a_session_that_does_not_heed_hup_and_term_is_killed(srv, box):
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--", "bash", "-c",
                 "trap '' HUP TERM; while :; do sleep .1; done")
    wait_for(lambda: runs(box, "trap"))
    srv.berth_ok("kill", f"{box}+s")
    wait_for(lambda: stored(srv, box)["status"] == "killed", 10)
    assert stored(srv, box)["exit_signal"] == "KILL"
    wait_for(lambda: not inside(box))


def test_a_client_that_vanishes_ends_its_command(srv, box):
    child = srv.spawn(box, "sleep 1000")
    wait_for(lambda: runs(box, "sleep 1000"))
    child.kill()
    wait_for(lambda: not inside(box), 10)


def test_a_killed_keeper_leaves_nothing_inside(srv, box):
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--", "sleep", "1000")
    wait_for(lambda: runs(box, "sleep 1000"))
    sid = stored(srv, box)["id"]
    keepers = run(["pgrep", "-f", f"berth-session .*{sid}"]).stdout.split()
    for pid in keepers:
        os.kill(int(pid), signal.SIGKILL)
    wait_for(lambda: stored(srv, box)["status"] == "lost")
    wait_for(lambda: not inside(box), 10)


def test_sessions_leave_no_growing_heap_of_files(srv, box):
    """What a signal needs to find its process is swept by later sessions."""
    for _ in range(5):
        srv.out(box, "true")
    left = len(list(pathlib.Path("/dev/shm").glob(".berth-ses-*")))
    for _ in range(5):
        srv.out(box, "true")
    assert len(list(pathlib.Path("/dev/shm").glob(".berth-ses-*"))) <= left + 1


def test_files_go_by_sftp_inside(srv, box, tmp_path):
    data = os.urandom(200_000)
    (tmp_path / "a").write_bytes(data)
    target = f"/tmp/berth-{box}-copy"
    put = files.sftp(srv, box, f"put {tmp_path}/a {target}\n"
                        f"get {target} {tmp_path}/b\nrm {target}\n")
    assert put.returncode == 0, put.stderr
    assert (tmp_path / "b").read_bytes() == data
    assert any("sftp-server" in " ".join(c) for c in calls("exec"))


def test_ports_are_forwarded_by_a_relay_inside(srv, box):
    """Nobody here reaches the sandbox's network, but a program in it does."""
    srv.berth_ok("sandbox", "create", box)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        port, local = server.getsockname()[1], free_port()
        client = srv.spawn(box, opts=("-N", "-L", f"{local}:localhost:{port}"))
        with wait_for(lambda: connect(local)) as there:
            here, _ = server.accept()
            with here:
                here.sendall(b"hello")
                assert there.recv(100) == b"hello"
                there.sendall(b"and back")
                assert here.recv(100) == b"and back"
                there.shutdown(socket.SHUT_WR)
                assert here.recv(100) == b""
        client.kill()
    assert ["exec", f"box-{box}", "nc", "-N", "localhost",
            str(port)] in calls("exec")


# ---- life ---------------------------------------------------------------------------


def test_limits_and_image_are_words_of_create(srv, box):
    srv.berth_ok("sandbox", "create", "--template", "large", box)
    assert calls("create")[-1][1:5] == [
        f"box-{box}", "--memory=1073741824", "--cpus=1.50", "big:1"]
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["provider"] == "fake" and row["state"] == "running"
    assert row["detail"] == "limits not enforced here: pids"


def test_a_network_that_the_engine_lacks_is_refused(fresh, box):
    srv = fresh(**{
        **SERVER,
        "provider fake__create": "{program} create box-{name} {network}"})
    srv.berth_ok("sandbox", "create", "--template", "fake", box)
    assert calls("create")[-1] == ["create", f"box-{box}", "lonely"]
    done = srv.berth("sandbox", "create", "-t", "elsewhere", f"{box}2")
    assert done.returncode == 1
    assert b"provider fake has no network = host" in done.stderr


def test_what_create_reads_is_written_to_it(fresh, box):
    srv = fresh(**{
        **SERVER,
        "provider fake__create_input": '"name: {dns}" "  image: {image}"',
        "provider fake__create": "{program} create box-{name} --read"})
    srv.berth_ok("sandbox", "create", box)
    assert (ENGINE / "input").read_text() == (
        f"name: {box.lower().replace('_', '-')}\n  image: plain\n")


def test_removing_is_idempotent(srv, box):
    """Somebody else removed it with the engine's own tools: that is gone."""
    srv.berth_ok("sandbox", "create", box)
    (ENGINE / "sandboxes" / f"box-{box}").unlink()
    srv.berth_ok("sandbox", "rm", box)
    assert phase(srv, box) is None


def test_removing_ends_sessions(srv, box):
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--", "sleep", "1000")
    wait_for(lambda: runs(box, "sleep 1000"))
    srv.berth_ok("sandbox", "rm", box)
    assert state(box) is None
    wait_for(lambda: stored(srv, box)["status"] != "running")
    assert not inside(box)


def test_a_lost_sandbox_is_noticed_and_made_again(srv, box):
    """The engine lost it: berth says so without being asked for anything, and
    who comes next gets a new one."""
    srv.berth_ok("sandbox", "create", box)
    (ENGINE / "sandboxes" / f"box-{box}").unlink()
    wait_for(lambda: phase(srv, box) == "failed", 15)
    assert srv.out(box, "echo again").strip() == "again"
    assert phase(srv, box) == "running"


def test_a_stopped_sandbox_is_started_again(srv, box):
    srv.berth_ok("sandbox", "create", box)
    path = ENGINE / "sandboxes" / f"box-{box}"
    path.write_text("exited")
    wait_for(lambda: phase(srv, box) == "failed", 15)
    assert srv.out(box, "echo again").strip() == "again"
    assert len([c for c in calls("create") if c[1] == f"box-{box}"]) == 1
    assert ["start", f"box-{box}"] in calls("start")


def test_a_failing_engine_is_quoted(srv, box):
    misbehave("create", "fail the image is not there")
    done = srv.berth("sandbox", "create", box)
    assert done.returncode == 1
    assert (f"cannot make sandbox {box}: fake create: the image is not there"
            in done.stderr.decode())
    done = srv.ssh(box, "true")
    assert done.returncode == 255
    assert b"the image is not there" in done.stderr
    (ENGINE / "create").unlink()
    assert srv.out(box, "echo fine").strip() == "fine"


def test_a_hanging_engine_has_a_limit_of_time(srv, box):
    misbehave("create", "hang")
    began = time.monotonic()
    done = srv.berth("sandbox", "create", box, timeout=30)
    assert done.returncode == 1
    assert b"does not answer within 4 s" in done.stderr
    assert 3 < time.monotonic() - began < 15
    (ENGINE / "create").unlink()
    misbehave("status", "hang")
    done = srv.berth("sandbox", "create", box, timeout=30)
    assert b"does not answer within 3 s" in done.stderr
    # The others are served meanwhile.
    assert srv.berth("sandbox", "ls").returncode == 0



def test_whoever_waits_hears_what_the_engine_says(srv, box):
    """At a terminal only: programs would take it for what they asked."""
    misbehave("create", "slow Pulling \x1b[31mimage")
    said = rb"berth: Pulling \e[31mimage"
    try:
        term = srv.term(box).ready()
        assert said + b"\r\n" in term.text
        assert term.text.index(said) < term.text.index(b"ready_")
        assert "Pulling" not in srv.berth_ok("screen", f"{box}+default")
        done = srv.ssh(f"{box}-b", "echo out")
        assert (done.stdout, done.stderr) == (b"out\n", b"")
        done = srv.berth("sandbox", "create", f"{box}-c")
        assert (done.returncode, done.stderr) == (0, b"")
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(str(srv.socket))
            s.sendall(json.dumps({"verb": "sandbox_create", "progress": True,
                                  "sandbox": f"{box}-d"}).encode() + b"\n")
            with s.makefile() as f:
                lines = [json.loads(f.readline())]
                while "ok" not in lines[-1]:
                    lines.append(json.loads(f.readline()))
        assert lines[-1]["ok"]
        assert [x["progress"] for x in lines[:-1]] == [
            "fake: makes it", "Pulling ?[31mimage"]
        term = Term([srv.build / "berth", "-S", srv.socket, "sandbox",
                     "create", f"{box}-e"])
        srv.clients.append(term)
        assert term.wait() == 0
        assert b"berth: Pulling ?[31mimage\r\n" in term.text
    finally:
        (ENGINE / "create").unlink()


def test_an_engine_that_dies_half_way_leaves_nothing_for_ever(srv, box):
    """It made something and was killed: the next request goes on from there."""
    misbehave("create-half", "die")
    done = srv.berth("sandbox", "create", box)
    assert done.returncode == 1
    assert b"ended by signal 9" in done.stderr
    assert state(box) is None, "what was half made was removed"
    (ENGINE / "create-half").unlink()
    assert srv.out(box, "echo fine").strip() == "fine"


def test_a_job_that_is_killed_half_way_is_made_good(srv, box):
    misbehave("create-half", "hang")
    child = subprocess.Popen(
        [BUILD / "berth", "-S", srv.socket, "sandbox", "create", box],
        stderr=subprocess.PIPE)
    wait_for(lambda: state(box) == "created")
    job = run(["pgrep", "-f", f"berth-sandbox provision {box}$"]).stdout
    os.kill(int(job), signal.SIGKILL)
    assert child.wait(10) == 1
    assert b"ended without a word" in child.stderr.read()
    child.stderr.close()
    # The engine's client went with it.
    wait_for(lambda: not run(["pgrep", "-f", f"create box-{box} "]).stdout)
    (ENGINE / "create-half").unlink()
    assert srv.out(box, "echo fine").strip() == "fine"


def test_an_engine_that_is_away_for_a_while_loses_nothing(srv, box):
    """A daemon that restarts is no reason to declare everything lost."""
    srv.berth_ok("sandbox", "create", box)
    misbehave("status", "fail cannot connect to the engine")
    wait_for(lambda: re.search(
        rf"sandbox_unclear.*{box}.*cannot connect", srv.log()), 10)
    assert phase(srv, box) == "running"
    done = srv.ssh(box, "true")
    assert b"cannot connect to the engine" in done.stderr
    (ENGINE / "status").unlink()
    assert srv.out(box, "echo fine").strip() == "fine"


def test_suspend_and_resume(srv, box):
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("sandbox", "suspend", box)
    assert (state(box), phase(srv, box)) == ("paused", "suspended")
    srv.berth_ok("sandbox", "suspend", box)
    srv.berth_ok("sandbox", "resume", box)
    assert (state(box), phase(srv, box)) == ("running", "running")
    srv.berth_ok("sandbox", "suspend", box)
    # Whoever comes wakes it.
    assert srv.out(box, "echo awake").strip() == "awake"
    assert phase(srv, box) == "running"


def test_verbs_of_the_command_line_work(srv, box, tmp_path):
    """exec, cp and logs are berth's own, whoever makes the sandbox; so is the
    command that has to run before anybody is let in."""
    srv.berth_ok("sandbox", "create", "--template", "begun", box)
    done = srv.berth("sandbox", "exec", "-e", "A=b c", box, "--", "sh", "-c",
                     'cat; echo "$A $INIT" >&2; exit 7', input=b"in\0")
    assert (done.returncode, done.stdout) == (7, b"in\0")
    assert done.stderr == b"b c yes\n"
    assert srv.berth("sandbox", "exec", box, "sh", "-c",
                     "kill -TERM $$").returncode == 143
    where = srv.berth_ok("sandbox", "exec", box, "pwd").strip()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "f").write_text("file")
    srv.berth_ok("sandbox", "cp", str(tmp_path / "top"), f"{box}:{box}")
    try:
        srv.berth_ok("sandbox", "cp", f"{box}:{box}/f", str(tmp_path / "g"))
    finally:
        shutil.rmtree(pathlib.Path(where, box), ignore_errors=True)
    assert (tmp_path / "g").read_text() == "file"
    assert srv.berth_ok("sandbox", "logs", box) == f"begun in {where}\n"


def test_the_log_of_the_engine_is_shown(srv, box):
    srv.berth_ok("sandbox", "create", box)
    assert srv.berth_ok("sandbox", "logs", "--engine", box) == (
        f"log box-{box}\n")
    assert srv.berth_ok("sandbox", "logs", "--engine", "--tail", "0",
                        "--timestamps", box) == (
        f"log --tail=0 --timestamps=true box-{box}\n")
    done = srv.berth("sandbox", "logs", "--engine", "--tail=3", box)
    assert done.returncode == 1
    assert done.stderr == b"berth: the engine's log: second\n"
    child = subprocess.Popen(
        [srv.build / "berth", "-S", srv.socket, "sandbox", "logs", "-f",
         "--engine", box], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for want in (b"log --follow=true", b"tick", b"tick"):
        assert child.stdout.readline().startswith(want)
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 0
    child.communicate()
    wait_for(lambda: not srv.sessions(box))


def test_what_a_provider_lacks_is_unsupported(fresh, box):
    lacking = ("suspend", "resume", "metrics", "forward", "sftp_server", "logs")
    srv = fresh(**{k: v for k, v in SERVER.items()
                   if k.split("__")[-1] not in lacking})
    srv.berth_ok("sandbox", "create", box)
    for verb in ("suspend", "stats"):
        done = srv.berth("sandbox", verb, box)
        assert done.returncode == 5, verb
        assert b"unsupported: provider fake cannot" in done.stderr
    done = srv.berth("sandbox", "logs", "--engine", box)
    assert (done.returncode, done.stderr) == (
        5, b"berth: unsupported: provider fake keeps no log of its own\n")
    done = files.sftp(srv, box, "ls\n")
    assert b"no file transfer: the provider of sandbox" in done.stderr
    rows = {r["name"]: r for r in srv.json("sandbox", "providers")}
    assert rows["fake"]["capabilities"] == "exec"


def test_providers_are_listed_with_capabilities(srv):
    rows = {r["name"]: r for r in srv.json("sandbox", "providers")}
    assert set(rows) == {"local", "native", "fake", "copier"}
    assert rows["fake"]["capabilities"] == (
        "exec, port-forward, metrics, suspend")
    assert rows["copier"]["capabilities"] == (
        "exec, port-forward, metrics, snapshot, suspend")


# ---- snapshots -----------------------------------------------------------------


@pytest.fixture
def home():
    shutil.rmtree(HOME, ignore_errors=True)
    (HOME / "d").mkdir(parents=True)
    (HOME / "a").write_text("one")
    (HOME / ".hidden").write_text("")
    (HOME / "d" / "b").write_text("two")
    (HOME / "d" / "b").chmod(0o4711)
    os.utime(HOME / "d" / "b", ns=(0, 10**18))
    (HOME / "link").symlink_to("/nowhere")
    (HOME / "closed").mkdir()
    (HOME / "closed" / "c").write_text("three")
    (HOME / "closed").chmod(0o555)
    yield HOME
    shutil.rmtree(HOME, ignore_errors=True)


def listing(top):
    """Once nothing in it comes or goes: the engine may still be at work."""
    def read():
        try:
            return read_all(top)
        except FileNotFoundError:
            return None

    before = wait_for(read)
    while (now := wait_for(read)) != before:
        before = now
    return now


def read_all(top):
    return {str(p.relative_to(top)): (p.lstat().st_mode, int(
        p.lstat().st_mtime), p.read_bytes() if p.is_file() else b"")
        for p in top.rglob("*")}


def archives(srv):
    return [p.name for p in srv.snapshots.iterdir()]


def test_snapshots_are_tars_of_the_engine(srv, box, home):
    """What the sandbox's own tar makes, kept as any other snapshot, and given
    back to it. One that is suspended is so again behind it."""
    srv.berth_ok("sandbox", "create", "--template", "copier", box)
    before = listing(home)
    done = srv.berth_ok("sandbox", "snapshot", "--name", "n", box)
    snap = done.strip()
    (row,) = srv.json("sandbox", "snapshots", box)
    assert (row["state"], row["files"]) == ("complete", len(before) + 1)
    listed = run(["tar", "--zstd", "-tf",
                  srv.snapshots / f"{snap}.tar.zst"]).stdout
    assert b"./closed/c\n" in listed
    (home / "a").write_text("changed")
    (home / "new").mkdir()
    (home / "d" / "b").unlink()
    srv.berth_ok("new", "-s", box, "-n", "s", "--", "sleep", "1000")
    srv.berth_ok("sandbox", "restore", snap)
    assert listing(home) == before
    assert stored(srv, box)["status"] != "running"
    assert state(box) == "running" and not runs(box, "sleep 1000")
    srv.berth_ok("sandbox", "suspend", box)
    other = srv.berth_ok("sandbox", "snapshot", box).strip()
    assert state(box) == "paused"
    # into a new one; and of an engine's into one of ours
    srv.berth_ok("sandbox", "rm", box)
    (home / "a").write_text("changed")
    srv.berth_ok("sandbox", "restore", other)
    assert state(box) == "running" and listing(home) == before
    srv.berth_ok("sandbox", "create", "--template", "plain", f"{box}p")
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}p")
    assert listing(srv.boxes / f"{box}p") == before
    srv.berth_ok("sandbox", "rm", f"{box}p")
    for one in (snap, other):
        srv.berth_ok("sandbox", "forget", one)


def test_a_copy_that_fails_changes_nothing(srv, box, home):
    srv.berth_ok("sandbox", "create", "--template", "copier", box)
    before = listing(home)
    snap = srv.berth_ok("sandbox", "snapshot", box).strip()
    kept = archives(srv)
    for how, why in (("fail Error: no tar", b"no tar"),
                     ("die", b"ended by signal 9")):
        # half-way: what looks for sftp-server is an exec as well
        misbehave("exec", how)
        done = srv.berth("sandbox", "snapshot", box)
        assert done.returncode == 1 and why in done.stderr, done
        assert archives(srv) == kept
        done = srv.berth("sandbox", "restore", snap)
        assert done.returncode == 1 and why in done.stderr, done
        (ENGINE / "exec").unlink()
        assert listing(home) == before
        assert srv.out(box, "echo on") == "on\n"
    # none of a new one that could not be filled
    misbehave("exec", "fail Error: no tar")
    done = srv.berth("sandbox", "restore", snap, "--to", f"{box}n")
    assert done.returncode == 1
    (ENGINE / "exec").unlink()
    wait_for(lambda: state(f"{box}n") is None
             and phase(srv, f"{box}n") is None)
    # a file that is not what it was ends no session
    file = srv.snapshots / f"{snap}.tar.zst"
    whole = file.read_bytes()
    file.write_bytes(whole[:len(whole) // 2])
    assert srv.berth("sandbox", "restore", snap).returncode == 1
    assert listing(home) == before
    srv.berth_ok("sandbox", "forget", snap)


@pytest.mark.parametrize("prints, why", [
    ("true", b"it is no whole tar"),
    ("echo text", b"it is no whole tar"),
    ("tar -cf - -C / etc/hostname | head -c 700", b"it is no whole tar"),
])
def test_what_is_no_tar_is_no_snapshot(fresh, box, home, prints, why):
    srv = fresh(**{**SERVER, "access__default_template": "copier",
                   "provider copier__snapshot": f"sh -c '{prints}'"})
    srv.berth_ok("sandbox", "create", box)
    done = srv.berth("sandbox", "snapshot", box)
    assert done.returncode == 1 and why in done.stderr, done
    assert not archives(srv)
    srv.berth_ok("sandbox", "rm", box)


def test_stats_come_from_inside(srv, box):
    srv.berth_ok("sandbox", "create", box)
    (row,) = srv.json("sandbox", "stats", box)
    assert row["name"] == box and row["net_rx_bytes"] >= 0


def test_a_new_berthd_knows_its_sandboxes(fresh, box):
    srv = fresh(**SERVER)
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("new", "-s", box, "-n", "s", "--", "sleep", "1000")
    wait_for(lambda: runs(box, "sleep 1000"))
    srv.kill()
    (ENGINE / "sandboxes" / f"box-{box}x").write_text("running")
    srv.start()
    assert phase(srv, box) == "running"
    assert srv.out(box, "echo fine").strip() == "fine"
    assert stored(srv, box)["status"] == "running"
    assert runs(box, "sleep 1000")
    srv.berth_ok("sandbox", "rm", box)
    assert state(box) is None
