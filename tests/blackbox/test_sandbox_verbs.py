"""What an administrator does to a sandbox from this host: runs commands in it,
copies files in and out, reads what its sessions printed, watches what it uses.
What is inside is hostile: nothing of it may reach a terminal or a file here
that was not asked for.
"""

import io
import json
import os
import re
import signal
import socket
import struct
import subprocess
import tarfile
import threading
import time

import pytest

import keeper_frames
from berth import BUILD, Term, run, wait_for

SERVER = {
    "access__default_template": "native",
    "session__stop_grace": "1s",
    "template plain__provider": "local",
    "template tight__provider": "local",
    "template tight__memory": "64M",
    "template tight__pids": "3000",
    "template tight__cpu": "50",
}


def make(srv, box, template="native"):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    return box


@pytest.fixture(params=["native", "plain"])
def there(srv, box, request):
    """A sandbox of either provider that is there."""
    return make(srv, box, request.param)


def cli(srv, *args, **kw):
    return subprocess.Popen(
        [srv.build / "berth", "-S", srv.socket, *args],
        stdin=kw.pop("stdin", subprocess.PIPE), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, **kw)


def term(srv, *args, **kw):
    made = Term([srv.build / "berth", "-S", srv.socket, *args], **kw)
    srv.clients.append(made)
    return made


# ---- exec and run -----------------------------------------------------------


def test_exec_keeps_the_streams_apart_and_the_code(srv, there):
    """Words arrive as they are; no shell here or there reads them again."""
    done = srv.berth("sandbox", "exec", there, "--", "sh", "-c",
                     'cat; echo "err $1" >&2; tty; exit 7', "x", "a  b$HOME",
                     input=b"\x00\xffin\n")
    assert done.returncode == 7
    assert done.stdout == b"\x00\xffin\nnot a tty\n"
    assert done.stderr == b"err a  b$HOME\n"


def test_exec_has_the_directory_and_variables_it_was_given(srv, there):
    done = srv.berth("sandbox", "exec", "-e", "A=b c", "-d", "/tmp", there,
                     "-e", "D=e", "sh", "-c", "echo $A,$D,$PWD")
    assert done.stdout == b"b c,e,/tmp\n", done
    home = srv.berth("sandbox", "exec", there, "sh", "-c",
                     "test $PWD = $HOME && echo $BERTH_SANDBOX")
    assert home.stdout.decode() == f"{there}\n"


@pytest.mark.parametrize("script,code", [
    ("exit 137", 137), ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exec_ends_as_its_command_does(srv, there, script, code):
    assert srv.berth("sandbox", "exec", there, "sh", "-c",
                     script).returncode == code


def test_exec_of_what_is_no_program_is_127(srv, there):
    done = srv.berth("sandbox", "exec", there, "--", "no-such-program")
    assert done.returncode == 127 and b"no-such-program" in done.stderr
    assert srv.berth("run", there, "/etc/passwd").returncode == 126


def test_exec_needs_a_sandbox_and_run_makes_one(srv, box):
    done = srv.berth("sandbox", "exec", box, "true")
    assert (done.returncode, done.stdout) == (3, b"")
    assert done.stderr.decode() == f"berth: there is no sandbox {box}\n"
    assert box not in {r["name"] for r in srv.json("sandbox", "ls")}
    done = srv.berth("run", box, "--", "sh", "-c", "echo hello; exit 9")
    assert (done.returncode, done.stdout) == (9, b"hello\n")
    assert box in {r["name"] for r in srv.json("sandbox", "ls")}
    assert srv.berth("run", "admin", "true").returncode == 125


def test_exec_passes_signals_on(srv, there):
    """The command may do something about an interrupt, and has the word."""
    for sig, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143),
                      (signal.SIGUSR1, 138)):
        child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                    "echo ready; exec sleep 60")
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(sig)
        assert child.wait(20) == code
    child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                "trap 'echo caught; exit 3' INT; echo ready; "
                "while :; do sleep 0.1; done")
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=20)[0] == b"caught\n"
    assert child.returncode == 3


def test_exec_that_is_killed_takes_its_command_along(srv, there):
    child = cli(srv, "sandbox", "exec", there, "sh", "-c",
                "echo ready; sleep 7373; :")
    assert child.stdout.readline() == b"ready\n"
    child.kill()
    child.communicate()
    wait_for(lambda: not srv.sessions(there))
    assert b"7373" not in srv.berth("sandbox", "exec", there, "sh", "-c",
                                    "ps ax | grep 737[3]").stdout


def test_exec_on_a_terminal_is_one_of_the_right_size(srv, there):
    there_is = term(srv, "sandbox", "exec", there, "sh", "-c",
                    "stty size; read x; stty size; echo got-$x",
                    cols=132, rows=50)
    there_is.expect(r"50 132\r\n")
    there_is.resize(90, 33)
    time.sleep(0.3)  # the size is an event of its own
    there_is.send("word\r")
    there_is.expect(r"33 90\r\ngot-word\r\n")
    assert there_is.wait() == 0


def test_exec_takes_its_terminal_by_option(srv, there):
    """-t makes one without one here; -i does without though one is here."""
    done = srv.berth("sandbox", "exec", "-t", there, "tty",
                     stdin=subprocess.DEVNULL)
    assert done.returncode == 0 and done.stdout.startswith(b"/dev/pts/"), done
    no = term(srv, "sandbox", "exec", "-i", there, "sh", "-c",
              "tty; exit 4")
    no.expect("not a tty")
    assert no.wait() == 4


def test_exec_is_a_row_and_with_a_terminal_recorded(srv, box):
    make(srv, box)
    srv.berth_ok("sandbox", "exec", box, "true")
    row = srv.row(box)
    assert json.loads(row["argv"]) == ["true"] and row["kind"] == "pipe"
    assert srv.sql("SELECT count(*) n FROM recording r JOIN session s ON "
                   f"s.id = r.session_id WHERE s.id = '{row['id']}'"
                   ) == [{"n": 0}]
    t = term(srv, "sandbox", "exec", box, "echo", "seen-it")
    assert t.wait() == 0
    rec = srv.recording(box, "complete")
    assert "seen-it" in srv.berth_ok("rec", "cat", rec["session_id"])


def test_exec_says_how_it_is_used(srv, box):
    for args in ((), (box,), ("-x", box, "true"), (box, "-e"),):
        done = srv.berth("sandbox", "exec", *args)
        assert done.returncode == 2
        assert b"usage: berth sandbox exec" in done.stderr


# ---- cp ---------------------------------------------------------------------


@pytest.fixture
def here(tmp_path):
    """Directory of this host with something of each kind in it."""
    top = tmp_path / "top"
    (top / "sub" / "deep").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "sub" / "script").write_bytes(b"#!/bin/sh\n")
    (top / "sub" / "script").chmod(0o751)
    (top / "secret").write_bytes(os.urandom(70000))
    (top / "secret").chmod(0o600)
    (top / "zero").write_bytes(b"")
    (top / ("n" * 200)).write_bytes(b"long")
    (top / "sub" / "deep" / ("m" * 120)).write_bytes(b"longer")
    (top / "-dash \n").write_bytes(b"odd")
    (top / "link").symlink_to("sub/script")
    (top / "out").symlink_to("/etc")
    (top / "far").symlink_to("/" + "x" * 150)
    for path in sorted(top.rglob("*"), reverse=True):
        os.utime(path, (1e9, 981173106), follow_symlinks=False)
    (top / "sub").chmod(0o711)
    os.utime(top, (1e9, 981173106))
    return top


def tree(top):
    """What a copy has to keep of everything below a directory."""
    found = {}
    for path in [top, *top.rglob("*")]:
        st = path.lstat()
        what = (os.readlink(path) if path.is_symlink()
                else path.read_bytes() if path.is_file() else None)
        found[str(path.relative_to(top))] = (
            what, oct(st.st_mode) if not path.is_symlink() else None,
            int(st.st_mtime))
    return found


def cp(srv, *args, code=0, **kw):
    done = srv.berth("sandbox", "cp", *map(str, args), **kw)
    assert done.returncode == code, (done.returncode, done.stderr)
    return done


def test_cp_brings_a_tree_there_and_back_as_it_was(srv, there, here, tmp_path):
    cp(srv, here, f"{there}:")
    cp(srv, "-r", f"{there}:top", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(here)
    # Into what is there already: below it, by its own name.
    cp(srv, f"{there}:top/sub", tmp_path / "back")
    assert tree(tmp_path / "back" / "sub")["script"] == (
        tree(here / "sub")["script"])


def test_cp_has_the_rules_of_docker_cp(srv, there, tmp_path):
    def inside(script):
        return srv.berth("sandbox", "exec", there, "sh", "-c",
                         script).stdout.decode().split()

    (tmp_path / "f").write_text("one")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x").write_text("two")
    cp(srv, tmp_path / "f", f"{there}:")           # into a directory
    cp(srv, tmp_path / "f", f"{there}:g")          # by another name
    cp(srv, tmp_path / "d", f"{there}:new")        # a directory that is made
    cp(srv, tmp_path / "d", f"{there}:new")        # and one below it
    cp(srv, f"{tmp_path}/d/.", f"{there}:new/d")   # what is in it
    assert inside("cat f g new/x new/d/x; echo; ls new/d") == [
        "oneonetwotwo", "x"]
    for src, dst, why in (("f", "no/", "there is no directory no/"),
                          ("f", "no/f", "no"),
                          ("d", "f", "f is no directory"),
                          ("gone", "", "No such file")):
        done = cp(srv, tmp_path / src, f"{there}:{dst}", code=1)
        assert why in done.stderr.decode(), done.stderr
    cp(srv, f"{there}:f", tmp_path / "d")
    cp(srv, f"{there}:new/.", tmp_path / "d")
    cp(srv, f"{there}:new/.", tmp_path / "e")
    assert (tmp_path / "d" / "f").read_text() == "one"
    assert (tmp_path / "d" / "d" / "x").read_text() == "two"
    assert (tmp_path / "e" / "x").read_text() == "two"
    for src, dst, why in (("gone", ".", "there is no ./gone"),
                          ("new", "f", "is no directory"),
                          ("f", "no/", "there is no directory"),
                          ("f", "no/f", "No such file")):
        done = cp(srv, f"{there}:{src}", f"{tmp_path}/{dst}", code=1)
        assert why in done.stderr.decode(), done.stderr


def test_cp_of_a_stream_is_a_tar(srv, box, here, tmp_path):
    make(srv, box)
    made = subprocess.run(["tar", "-c", "-C", here, "sub", "zero"],
                          stdout=subprocess.PIPE, check=True).stdout
    cp(srv, "-", f"{box}:", input=made)
    out = cp(srv, f"{box}:sub", "-").stdout
    subprocess.run(["tar", "-x", "-C", tmp_path], input=out, check=True)
    assert tree(tmp_path / "sub") == tree(here / "sub")
    done = cp(srv, "-", f"{box}:zero", input=made, code=1)
    assert b"zero is no directory" in done.stderr


def test_cp_leaves_out_what_is_no_file(srv, box, tmp_path):
    make(srv, box)
    srv.berth_ok("sandbox", "exec", box, "sh", "-c",
                 "mkdir d; echo hello > d/a; ln d/a d/b; mkfifo d/pipe")
    done = cp(srv, f"{box}:d", tmp_path / "d", code=1)
    assert b"pipe: it is neither" in done.stderr
    made = tmp_path / "d"
    assert sorted(os.listdir(made)) == ["a", "b"]
    assert (made / "a").stat().st_ino == (made / "b").stat().st_ino


def unpack(stream, source, target, tmp_path, code=0):
    """berth sandbox cp with a sandbox that sends STREAM, whatever that is."""
    path = tmp_path / "sock"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve():
        peer, _ = listener.accept()
        assert b"sandbox_cp" in peer.recv(4096)
        ours, theirs = socket.socketpair()
        socket.send_fds(peer, [b'{"ok":true,"id":"x","fd":"viewer"}\n'],
                        [theirs.fileno()])
        theirs.close()
        link = keeper_frames.Link(ours)
        for at in range(0, len(stream), 60000):
            link.send(keeper_frames.DATA, keeper_frames.OUT,
                      payload=stream[at:at + 60000])
        link.send(keeper_frames.EXIT,
                  payload=struct.pack(">BBII", 0, 0, code, 0))
        link.send(keeper_frames.END)
        try:
            while ours.recv(4096):
                pass
        except ConnectionError:
            pass  # it was cut off, as it deserves
        ours.close()
        peer.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    done = run([BUILD / "berth", "-S", path, "sandbox", "cp",
                f"box:{source}", target])
    thread.join(20)
    listener.close()
    path.unlink()
    return done


def archive(*members, form=tarfile.GNU_FORMAT):
    out = io.BytesIO(b"d 0\n")
    out.seek(0, 2)
    with tarfile.open(fileobj=out, mode="w|", format=form) as t:
        for name, kind, link, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.linkname, info.mode = kind, link, 0o6777
            info.size, info.mtime = len(data), 1234567890.5
            t.addfile(info, io.BytesIO(data))
    return out.getvalue()


DIR, REG, SYM, LNK, CHR = (tarfile.DIRTYPE, tarfile.REGTYPE, tarfile.SYMTYPE,
                           tarfile.LNKTYPE, tarfile.CHRTYPE)


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT,
                                  tarfile.USTAR_FORMAT])
def test_cp_reads_what_other_tars_write(tmp_path, form):
    long = "/".join(["p" * 60, "q" * 90])
    done = unpack(archive(("d", DIR, "", b""), (f"d/{long}", REG, "", b"x"),
                          ("d/l", SYM, "z" * 99, b""), form=form),
                  "d", tmp_path / "d", tmp_path)
    assert done.returncode == 0, done.stderr
    made = tmp_path / "d" / long
    assert made.read_bytes() == b"x"
    assert made.stat().st_mtime == 1234567890 + (
        0.5 if form == tarfile.PAX_FORMAT else 0)
    assert os.readlink(tmp_path / "d" / "l") == "z" * 99


@pytest.mark.parametrize("kind", ["up", "absolute", "through", "before",
                                  "over", "hard", "top", "setuid", "cut",
                                  "garbage", "failed"])
def test_cp_lets_nothing_out_of_its_target_c14(tmp_path, kind):
    """Whoever rules the sandbox writes the stream; a link of an earlier copy
    may be there already."""
    outside, target = tmp_path / "outside", tmp_path / "target"
    (target / "d").mkdir(parents=True)
    outside.mkdir()
    (outside / "kept").write_text("mine")
    (target / "d" / "before").symlink_to(outside)
    (target / "d" / "file").symlink_to(outside / "kept")
    evil = {
        "up": [("./d/../../escaped", REG, "", b"evil")],
        "absolute": [(f"{outside}/escaped", REG, "", b"evil")],
        "through": [("./d/link", SYM, str(outside), b""),
                    ("./d/link/escaped", REG, "", b"evil")],
        "before": [("./d/before/escaped", REG, "", b"evil")],
        "over": [("./d/file", REG, "", b"evil")],
        "hard": [("./d/hard", LNK, "./d/before/kept", b"")],
        "top": [("./other", REG, "", b"evil")],
        "setuid": [("./d/setuid", REG, "", b"evil"),
                   ("./d/null", CHR, "", b"")],
        "cut": [("./d/half", REG, "", bytes(50000))],
        "garbage": [], "failed": [("./d/new", REG, "", b"evil")],
    }[kind]
    stream = archive(("./d", DIR, "", b""), *evil)
    if kind == "cut":
        stream = stream[:20000]
    if kind == "garbage":
        stream = b"d 0\n" + os.urandom(2048)
    done = unpack(stream, "d", target, tmp_path,
                  code=2 if kind == "failed" else 0)
    assert sorted(os.listdir(outside)) == ["kept"]
    assert (outside / "kept").read_text() == "mine"
    assert (outside / "kept").stat().st_nlink == 1
    assert sorted(os.listdir(tmp_path)) == ["outside", "target"]
    assert not list(target.rglob(".berth-cp-*"))
    assert not (target / "d" / "half").exists()
    assert (target / "d" / "before").is_symlink()
    if kind == "over":
        assert done.returncode == 0
        assert (target / "d" / "file").read_text() == "evil"
        assert not (target / "d" / "file").is_symlink()
        return
    if kind == "setuid":
        assert (target / "d" / "setuid").stat().st_mode & 0o7777 == 0o777
        assert not (target / "d" / "null").exists()
    assert done.returncode == 1 and done.stderr.startswith(b"berth: "), done


def test_cp_is_a_row_of_transfer(srv, box, here):
    make(srv, box)
    cp(srv, here / "secret", f"{box}:renamed")
    assert srv.json("sandbox", "cp", f"{box}:renamed", here / "again") == {
        "files": 1, "bytes": (here / "secret").stat().st_size, "skipped": 0}
    cp(srv, f"{box}:nothing", here, code=1)
    rows = wait_for(lambda: (lambda r: len(r) == 3 and r)(srv.sql(
        "SELECT direction, path, bytes, status, identity, finished "
        f"FROM v_transfers WHERE sandbox = '{box}' AND status != 'open'")))
    assert [(r["direction"], r["path"], r["status"]) for r in rows] == [
        ("in", "renamed", "done"), ("out", "renamed", "done"),
        ("out", "nothing", "failed")]
    assert rows[0]["bytes"] >= 70000 and rows[1]["bytes"] >= 70000
    assert all(r["identity"].startswith("uid:") for r in rows)


def test_cp_that_is_interrupted_says_so(srv, box, tmp_path):
    make(srv, box)
    with open(tmp_path / "big", "wb") as f:
        f.truncate(64 << 30)
    child = cli(srv, "sandbox", "cp", str(tmp_path / "big"), f"{box}:/dev")
    errors = child.communicate(timeout=20)[1]
    assert errors == b"berth: nobody may write to /dev\n"
    assert child.returncode == 1
    child = cli(srv, "sandbox", "cp", str(tmp_path / "big"), f"{box}:")
    wait_for(lambda: srv.sessions(box))
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=20)[1].decode()
    assert child.returncode == 130 and "interrupted: " in errors, errors
    assert "big" in errors
    wait_for(lambda: not srv.sessions(box))
    srv.berth_ok("sandbox", "rm", box)


def test_cp_out_that_is_interrupted_leaves_no_half_file(srv, box, tmp_path):
    make(srv, box)
    srv.berth_ok("sandbox", "exec", box, "truncate", "-s", "64G", "big")
    t = term(srv, "sandbox", "cp", f"{box}:.", str(tmp_path / "out"))
    t.expect(r" \d+% \[#* *\] \d+\.\dM .*big")
    assert [p.name[:10] for p in (tmp_path / "out").iterdir()] == [
        ".berth-cp-"]
    t.send("\x03")
    assert t.wait() == 130
    assert b"interrupted: " in t.text and b"not all of out/big" in t.text
    assert list((tmp_path / "out").iterdir()) == []
    wait_for(lambda: not srv.sessions(box))
    rows = srv.sql("SELECT status FROM v_transfers WHERE sandbox = "
                   f"'{box}'")
    assert [r["status"] for r in rows] == ["cut"]


def test_cp_shows_how_far_it_is_on_a_terminal_only(srv, box, tmp_path):
    make(srv, box)
    (tmp_path / "f").write_bytes(bytes(5 << 20))
    assert cp(srv, tmp_path / "f", f"{box}:").stderr == b""
    for args in ((str(tmp_path / "f"), f"{box}:"),
                 (f"{box}:f", str(tmp_path / "g"))):
        shown = term(srv, "sandbox", "cp", *args)
        assert shown.wait() == 0
        assert b"100% [####################] 5.0M " in shown.text
        assert re.search(rb"/s [fg]\r\n$", shown.text), shown.text


def test_cp_says_what_is_missing(srv, fresh, box, tmp_path):
    assert cp(srv, f"{box}:f", tmp_path, code=3).stderr.decode() == (
        f"berth: there is no sandbox {box}\n")
    for args in ((), ("a", "b"), (f"{box}:a", f"{box}:b"), ("./a:b", "c")):
        assert b"usage: berth sandbox cp" in cp(srv, *args, code=2).stderr
    make(srv, box, "plain")
    off = fresh(access__default_template="local", sftp__mode="off")
    make(off, box, "local")
    assert b"switched off" in cp(off, f"{box}:f", tmp_path, code=5).stderr


# ---- logs -------------------------------------------------------------------


def logs(srv, *args):
    return srv.berth_ok("sandbox", "logs", *args)


def printed(srv, box, name, script, pty=True):
    """A session that printed something, and has ended."""
    srv.berth_ok("new", "-s", box, "-n", name,
                 *([] if pty else ["--no-pty"]), "--", "sh", "-c", script)
    srv.row(box, name)


def test_logs_are_lines_for_people(srv, box):
    """Colours, titles, progress that was written over, the alternate screen:
    of all that nothing is left, and nothing that a terminal would obey."""
    make(srv, box)
    printed(srv, box, "one", r"""
        printf '\033[31mred\033[m \033]0;title\007plain\n'
        printf '10%%\r50%%\r100%%\ndone\bX\n'
        printf 'caf\303\251 \302\2331m\377\007\t|\n'
        printf '\033[?1049hhidden\nhidden\033[?1049l'
        printf 'no end'
    """)
    assert logs(srv, box) == (
        "red plain\n100%\ndonX\ncafé \N{REPLACEMENT CHARACTER}\t|\n"
        "no end\n")


def test_logs_merge_the_sessions_by_time(srv, box):
    make(srv, box)
    printed(srv, box, "first", "echo a; sleep 0.4; echo c")
    srv.berth_ok("new", "-s", box, "-n", "long", "--", "sh", "-c",
                 "echo d; until [ -e go ]; do sleep 0.1; done; echo f;"
                 " sleep 60")
    wait_for(lambda: "long | d" in logs(srv, box))
    printed(srv, box, "pipe", "echo e >&2; sleep 0.1; touch go", pty=False)
    wait_for(lambda: "long | f" in logs(srv, box))
    assert logs(srv, box).splitlines() == [
        "first | a", "first | c", "long | d", "pipe | e", "long | f"]
    assert logs(srv, "--tail", "2", box).splitlines() == [
        "pipe | e", "long | f"]
    stamped = logs(srv, "--timestamps", "--tail=1", box)
    assert re.fullmatch(
        r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z long \| f\n", stamped)
    assert logs(srv, "--tail", "0", box) == ""
    objects = [json.loads(line)
               for line in logs(srv, "--json", box).splitlines()]
    assert [(o["session"], o["text"]) for o in objects] == [
        ("first", "a"), ("first", "c"), ("long", "d"), ("pipe", "e"),
        ("long", "f")]
    assert all(abs(o["time_ms"] / 1000 - time.time()) < 600 for o in objects)


def test_logs_follow_until_the_sandbox_is_gone(srv, box):
    make(srv, box)
    child = cli(srv, "sandbox", "logs", "-f", "--tail", "1", box)
    printed(srv, box, "one", "echo hello; sleep 0.1; echo there")
    assert child.stdout.readline() == b"hello\n"
    assert child.stdout.readline() == b"there\n"
    printed(srv, box, "two", "echo again")
    assert child.stdout.readline() == b"two | again\n"
    srv.berth_ok("sandbox", "rm", box)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (0, b"", b"")


def test_logs_end_when_interrupted(srv, box):
    make(srv, box)
    printed(srv, box, "one", "echo hello")
    child = cli(srv, "sandbox", "logs", "-f", box)
    assert child.stdout.readline() == b"hello\n"
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 0


def test_logs_are_of_this_sandbox_only(srv, box):
    """One that had the name before has nothing to say."""
    make(srv, box)
    printed(srv, box, "one", "echo before")
    srv.berth_ok("sandbox", "rm", box)
    done = srv.berth("sandbox", "logs", box)
    assert done.returncode == 3
    assert done.stderr.decode() == f"berth: there is no sandbox {box}\n"
    make(srv, box)
    assert logs(srv, box) == ""
    assert srv.berth("sandbox", "logs", "--tail", "x", box).returncode == 2


# ---- stats ------------------------------------------------------------------


def test_stats_watch_prints_an_array_a_line(srv, box):
    make(srv, box)
    child = cli(srv, "sandbox", "stats", "--watch", "-n", "0.2", "--json", box)
    ticks = [json.loads(child.stdout.readline()) for _ in range(3)]
    child.send_signal(signal.SIGINT)
    assert child.wait(10) == 0
    assert [t[0]["name"] for t in ticks] == [box] * 3
    assert ticks[0][0]["processes"] >= 1
    assert srv.berth("sandbox", "stats", "--watch", "nobody").returncode == 3
    for wrong in ("0", "x", "1s", "-1", "nan"):
        assert srv.berth("sandbox", "stats", "-n", wrong).returncode == 2


def test_stats_watch_repaints_a_terminal_in_place(srv, box):
    make(srv, box)
    shown = term(srv, "sandbox", "stats", "--watch", "-n", "0.2", box)
    shown.expect(r"PROCESSES.*\x1b\[H.*PROCESSES.*\x1b\[H")
    assert shown.screen().text().count("NAME") == 1
    shown.send("\x03")
    assert shown.wait() == 0
    assert shown.text.endswith(b"\x1b[?25h"), shown.text[-40:]


def test_stats_of_local_are_those_of_its_sessions(srv, box):
    """Whatever left its parent, its session or its name counts; what is
    another sandbox's, or berth's, does not."""
    make(srv, box, "plain")
    make(srv, box + "o", "plain")

    def stats():
        row, = srv.json("sandbox", "stats", box)
        return row

    assert stats()["processes"] == 0
    printed_by = cli(srv, "sandbox", "exec", box, "env", "-i", "/bin/sh", "-c",
                     "setsid sleep 60 & echo $!; (sleep 60 & echo $!); "
                     "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; "
                     "echo ready; exec sleep 60")
    other = cli(srv, "sandbox", "exec", box + "o", "sleep", "60")
    daemons = [int(printed_by.stdout.readline()) for _ in range(2)]
    assert printed_by.stdout.readline() == b"ready\n"
    row = stats()
    assert row["processes"] == 3, row
    assert 0 < row["memory_bytes"] < 64 << 20 and row["cpu_ms"] > 20, row
    assert row["net_rx_bytes"] is None
    for pid in daemons:
        os.kill(pid, signal.SIGKILL)
    for child in (printed_by, other):
        child.kill()
        child.communicate()
    wait_for(lambda: stats()["processes"] == 0)


def test_local_holds_each_process_to_its_limits(srv, box):
    make(srv, box, "tight")
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["detail"] == "limits not enforced here: memory, cpu"
    assert srv.berth_ok("sandbox", "exec", box, "bash", "-c",
                        "ulimit -u; ulimit -d; ulimit -Hu") == (
        "3000\n65536\n3000\n")
    term_is = term(srv, "sandbox", "exec", box, "bash", "-c", "ulimit -d")
    term_is.expect("65536")
    done = srv.berth("sandbox", "exec", box, "python3", "-c",
                     "x = bytearray(200 << 20)")
    assert done.returncode == 1 and b"MemoryError" in done.stderr
