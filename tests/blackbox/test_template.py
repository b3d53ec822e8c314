"""What a template says of its sandboxes: variables, a command that runs once
before anybody is let in, which doors are shut; and which template a key gets.
"""

import socket
import subprocess
import threading
import time

import pytest

from berth import free_port, wait_for

SERVER = {
    "access__default_template": "auto",
    "session__stop_grace": "1s",
    "template plain__provider": "local",
    "template vars__provider": "local",
    "template vars__env": "A=1 'B=two words' LANG=C.UTF-8 HOME=/tmp\n"
                          "    BRACE={x} EMPTY= \"Q=a \\\"b\\\"\"",
    "template nvars__env": "A=1",
    "template good__init": "echo preparing; echo $0 $A $(tty)\n"
                           "    cat; sleep 0.3; echo made >> made",
    "template good__env": "A=x",
    "template goodplain__provider": "local",
    "template goodplain__init": "cat; sleep 0.3; echo made >> made",
    "template bad__init": "echo first; printf 'no \\033[31mpackage\\n\\n'"
                          " >&2; exit 3",
    "template badplain__provider": "local",
    "template badplain__init": "test -e /tmp/berth-$BERTH_SANDBOX || "
                               "{ echo not yet; exit 1; }; echo made > made",
    "template slow__init": "echo waiting; trap '' TERM; sleep 60",
    "template slow__init_timeout": "500ms",
    "template wait__init": "echo waiting; sleep 60",
    "template none__init": "/no/such/program",
    "template nofiles__sftp": "no",
    "template sized__workspace_size": "16M",
    "template sizedplain__provider": "local",
    "template sizedplain__workspace_size": "16M",
    "template sizedplain__cpu": "50",
    "template noports__forward": "no",
}


def create(srv, box, template, code=0):
    done = srv.berth("sandbox", "create", "--template", template, box)
    assert done.returncode == code, done.stderr
    return done.stderr.decode()


def state(srv, box):
    return next((r["state"] for r in srv.json("sandbox", "ls")
                 if r["name"] == box), None)


def test_variables_reach_all_that_runs(srv, box):
    """Those of a template come before what a client sends for itself, and
    never in the place of what berth says."""
    create(srv, box, "vars")
    ask = 'echo "$A,$B,$LANG,$HOME,$BRACE,${EMPTY-unset},$Q"'
    want = "1,two words,C.UTF-8,/tmp,{x},,a \"b\""
    assert srv.out(box, ask).strip() == want
    term = srv.term(box).ready()
    term.send(ask + "; exit\r")
    term.expect(want.replace("{", "\\{"))
    assert term.wait() == 0
    assert srv.ssh(box, "echo $LANG", opts=("-o", "SetEnv=LANG=de_DE"),
                   ).stdout == b"de_DE\n"
    assert srv.berth_ok("sandbox", "exec", "-e", "A=2", box, "sh", "-c",
                        "echo $A $HOME $BERTH_SANDBOX") == f"2 /tmp {box}\n"


@pytest.mark.parametrize("template", ["good", "goodplain"])
def test_init_runs_once_before_anybody_is_let_in(srv, box, template):
    """Several come at once; all of them find what it made, and it made it
    once, whoever comes later."""
    maker = threading.Thread(
        target=create, args=(srv, box, template), daemon=True)
    maker.start()
    wait_for(lambda: state(srv, box))
    clients = [srv.spawn(box, "cat made", stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE) for _ in range(3)]
    assert [c.communicate(timeout=30) for c in clients] == [(b"made\n", b"")] * 3
    maker.join(30)
    assert state(srv, box) == "running"
    row = srv.row(box, ".init")
    assert (row["exit_code"], row["kind"]) == (0, "pipe")
    srv.kill()
    srv.start()
    assert srv.out(box, "cat made") == "made\n"
    if template == "good":
        assert srv.berth_ok("sandbox", "logs", box) == (
            "preparing\n/bin/bash x not a tty\n")
    srv.berth_ok("sandbox", "rm", box)


def test_init_that_fails_fails_the_sandbox_with_its_last_line(srv, box):
    why = f"cannot make sandbox {box}: init ended with code 3: no ?[31mpackage"
    assert create(srv, box, "bad", 1) == f"berth: {why}\n"
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["state"] == "failed"
    assert row["detail"] == "init ended with code 3: no ?[31mpackage"
    done = srv.ssh(box, "true")
    assert done.returncode == 255 and b"init ended with code 3" in done.stderr
    assert "first" in srv.berth_ok("sandbox", "logs", box)
    srv.berth_ok("sandbox", "rm", box)


def test_init_is_tried_again_after_it_failed(srv, box, tmp_path):
    assert "code 1: not yet" in create(srv, box, "badplain", 1)
    flag = f"/tmp/berth-{box}"
    open(flag, "w").close()
    try:
        assert srv.out(box, "cat made") == "made\n"
    finally:
        subprocess.run(["rm", flag], check=True)
    assert state(srv, box) == "running"


def test_init_has_its_time(srv, box):
    began = time.monotonic()
    assert "init took too long: waiting" in create(srv, box, "slow", 1)
    assert time.monotonic() - began < 15
    assert state(srv, box) == "failed"
    assert not srv.sessions(box)


def test_init_of_what_is_no_program_says_so(srv, box):
    assert "init ended with code 127: " in create(srv, box, "none", 1)


def test_sandbox_is_removed_while_init_runs(srv, box):
    maker = srv.berth
    out = {}
    thread = threading.Thread(target=lambda: out.update(done=maker(
        "sandbox", "create", "--template", "wait", box)), daemon=True)
    thread.start()
    wait_for(lambda: srv.sessions(box))
    srv.berth_ok("sandbox", "rm", box)
    thread.join(20)
    assert out["done"].returncode == 4
    assert state(srv, box) is None
    wait_for(lambda: not srv.sessions(box))


def test_init_that_berthd_left_alone_is_done_again(srv, box):
    """Half of it may be done: nobody is let in on that."""
    thread = threading.Thread(target=lambda: srv.berth(
        "sandbox", "create", "--template", "wait", box), daemon=True)
    thread.start()
    wait_for(lambda: srv.sessions(box))
    srv.kill()
    srv.start()
    thread.join(20)
    wait_for(lambda: state(srv, box) == "failed")
    wait_for(lambda: not srv.sessions(box))
    srv.berth_ok("sandbox", "rm", box)


def test_template_without_files_refuses_them_in_a_sentence(srv, box, tmp_path):
    create(srv, box, "nofiles")
    why = f"the template nofiles of sandbox {box} allows no file transfer"
    done = srv.ssh(box, opts=("-s",), command="sftp")
    assert done.returncode == 255 and why in done.stderr.decode(), done
    done = srv.berth("sandbox", "cp", f"{box}:x", tmp_path)
    assert (done.returncode, done.stderr.decode()) == (5, f"berth: {why}\n")
    assert srv.out(box, "echo else") == "else\n"


def test_template_without_forwards_refuses_them(srv, box):
    create(srv, box, "noports")
    port = free_port()
    done = srv.ssh(box, opts=("-W", f"127.0.0.1:{port}"))
    assert done.returncode != 0 and b"administratively" in done.stderr
    wait_for(lambda: f"the template noports of sandbox {box} allows no "
             "forwarding" in srv.log())
    done = srv.ssh(box, opts=("-R", "0:127.0.0.1:1", "-o",
                              "ExitOnForwardFailure=yes"), command="true")
    assert done.returncode == 255


def test_key_has_a_template_for_its_sandboxes(srv, box):
    """Those that are made for it; what is there stays what it is."""
    key = srv.add_key("temp", 'role="writer",template="nvars"')
    assert srv.ssh(box, "echo $A", key=key).stdout == b"1\n"
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["template"] == "nvars"
    other = box + "o"
    create(srv, other, "plain")
    assert srv.ssh(other, "echo $A", key=key).stdout == b"\n"
    wrong = srv.add_key("wrong", 'template="nosuch"')
    done = srv.ssh(box + "w", "true", key=wrong)
    assert done.returncode == 255
    assert b"there is no template nosuch; there is: auto" in done.stderr


def test_key_keeps_its_template_across_an_upgrade(srv, box):
    key = srv.add_key("up", 'role="writer",template="nvars"')
    path = srv.dir / "mux"
    opts = ("-o", f"ControlPath={path}")
    master = srv.spawn(box + "x", opts=(*opts, "-M", "-N"), key=key)
    wait_for(path.exists)
    srv.berth_ok("upgrade")
    done = srv.ssh(box + "x", "echo $A", opts=opts, key=key)
    assert done.stdout == b"1\n", done
    master.terminate()
    master.wait(10)


def test_workspace_holds_what_it_may_and_survives(srv, box, as_root):
    """It is a file system of its own, which is there again after the sandbox
    was ended, and gone with it."""
    create(srv, box, "sized")
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    if row["detail"]:
        srv.berth_ok("sandbox", "rm", box)
        pytest.skip("explained: there are no loop devices here")
    image = srv.boxes / f".{box}.img"
    assert image.stat().st_size == 16 << 20
    assert srv.out(box, "ls -A; stat -c %U:%a . | sed s/.*://") == "700\n"
    done = srv.ssh(box, "echo kept > kept; dd if=/dev/zero of=big bs=1M")
    assert done.returncode == 1 and b"No space left" in done.stderr
    assert 10 << 20 < int(srv.out(box, "stat -c %s big")) < 16 << 20
    first = dict(line.split(" ", 1) for line in
                 (srv.boxes / f".{box}.box").read_text().splitlines())
    subprocess.run(["kill", "-9", first["pid"]], check=True)
    wait_for(lambda: state(srv, box) == "failed")
    assert srv.out(box, "cat kept; df -m . | wc -l") == "kept\n2\n"
    cp = srv.dir / "copied"
    srv.berth_ok("sandbox", "cp", f"{box}:kept", str(cp))
    assert cp.read_text() == "kept\n"
    srv.berth_ok("sandbox", "rm", box)
    assert not image.exists() and not (srv.boxes / box).exists()
    assert box not in open("/proc/mounts").read()


def test_workspace_size_that_nobody_enforces_is_named(srv, box):
    create(srv, box, "sizedplain")
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["detail"] == (
        "limits not enforced here: cpu, workspace_size")
