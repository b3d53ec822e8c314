"""Snapshots: the files of a sandbox come back as they were, all of them and
nothing else, also when somebody moves them meanwhile, when the disk is full, and
when whatever works on it is killed.
"""

import hashlib
import os
import signal
import stat
import subprocess
import threading
import time

import pytest

import procs
from berth import IS_ROOT, run, wait_for
from test_command import COMMANDS

SERVER = {
    "access__default_template": "local",
    "template own__provider": "native",
    "template own__pids": "200",
    "provider fake__image": "plain",
    **{f"provider fake__{key}": COMMANDS[key]
       for key in ("program", "create", "remove", "status", "exec",
                   "exec_tty", "signal", "home", "shell", "start", "stop")},
    "provider fake__env": "FAKE_ENGINE=/nonexistent",
}

# What a tree is made of that has one of everything.
TREE = r"""
import os, socket, sys
n = int(sys.argv[1])
for i in range(n):
    d = f"d{i % 97}/e{i % 7}"
    os.makedirs(d, exist_ok=True)
    p = f"{d}/f{i}"
    with open(p, "wb") as f:
        f.write(os.urandom(i % 3000) + b"%d" % i)
    os.chmod(p, [0o644, 0o600, 0o755, 0o4711, 0o2750, 0o400, 0o000][i % 7])
    os.utime(p, ns=(0, 10**18 + i * 1234567891), follow_symlinks=False)
os.link("d0/e0/f0", "hard")
os.symlink("/etc/passwd", "soft")
os.symlink("nowhere", os.fsencode("bytes-") + b"\xff\xfe")
os.mkfifo("fifo", 0o622)
socket.socket(socket.AF_UNIX).bind("socket")
with open("sparse", "wb") as f:
    f.truncate(1 << 31)
    f.seek(1 << 30)
    f.write(b"middle")
try:
    os.setxattr("hard", "user.note", b"kept")
    os.setxattr("hard", "system.posix_acl_access",
                bytes.fromhex("0200000001000600ffffffff020004000c000000"
                              "04000400ffffffff10000400ffffffff"
                              "20000400ffffffff"))
except OSError:
    pass
os.chmod("d1", 0o1555)
os.utime("d1/e1", ns=(0, 123456789123456789))
os.utime("d1", ns=(0, 987654321987654321))
"""


def attributes(path):
    try:
        return {k: os.getxattr(path, k, follow_symlinks=False)
                for k in os.listxattr(path, follow_symlinks=False)}
    except OSError:
        return {}


def digest(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest() if hasattr(
            hashlib, "file_digest") else hashlib.sha256(f.read()).hexdigest()


def manifest(top):
    """Everything that is to be the same, by path."""
    found, inodes = {}, {}
    for where, dirs, names in os.walk(os.fsencode(top)):
        for name in dirs + names:
            path = os.path.join(where, name)
            st = os.lstat(path)
            if stat.S_ISSOCK(st.st_mode):
                continue
            key = os.path.relpath(path, os.fsencode(top))
            what = b""
            if stat.S_ISLNK(st.st_mode):
                what = os.readlink(path)
            elif stat.S_ISREG(st.st_mode) and st.st_size < 1 << 24:
                what = digest(path)
            elif stat.S_ISREG(st.st_mode):
                with open(path, "rb") as f:
                    what = os.pread(f.fileno(), 6, 1 << 30)
            first = inodes.setdefault(st.st_ino, key)
            found[key] = (st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns,
                          st.st_size if not stat.S_ISDIR(st.st_mode) else 0,
                          what, min(first, key) if st.st_nlink > 1
                          and not stat.S_ISDIR(st.st_mode) else b"",
                          tuple(sorted(attributes(path).items())))
    return found


def fill(srv, box, n):
    done = srv.ssh(box, f"python3 - {n}", input=TREE.encode())
    assert done.returncode == 0, done.stderr


def blob(srv, box, mb, name="big"):
    srv.out(box, f"head -c {mb}M /dev/urandom > {name}", timeout=60)


def snapshot(srv, box, *args):
    return srv.berth_ok("sandbox", "snapshot", *args, box,
                        timeout=60).strip()


def rows(srv, *args):
    return srv.json("sandbox", "snapshots", *args)


def beside(srv):
    """What nobody should see beside workspaces and snapshots."""
    left = [p for p in os.listdir(srv.boxes) if p.endswith(".fresh")]
    kept = {f"{r['id']}.tar.zst" for r in rows(srv)}
    if srv.snapshots.exists():
        left += [p for p in os.listdir(srv.snapshots) if p not in kept]
    return left


def helper(srv, operation, box):
    """The process that does OPERATION, once there is one."""
    def look():
        for p in procs.descendants(srv.proc.pid):
            try:
                with open(f"/proc/{p.pid}/cmdline", "rb") as f:
                    words = f.read().split(b"\0")
            except OSError:
                continue
            if words[1:3] == [operation.encode(), box.encode()]:
                return p.pid
        return None
    return wait_for(look, 20, f"{operation} of {box}")


@pytest.mark.parametrize("template, n", [("local", 1000), ("own", 10000)])
def test_ten_thousand_files_come_back_as_they_were(srv, box, template, n):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    fill(srv, box, n)
    before = manifest(srv.boxes / box)
    assert len(before) > n
    done = srv.berth("sandbox", "snapshot", "--name", "first",
                     "--description", "as it was", "--json", box, timeout=60)
    assert done.returncode == 0, done.stderr
    assert b"1 sockets" in done.stderr
    row = rows(srv, box)[0]
    assert (row["name"], row["description"], row["state"], row["skipped"]) \
        == ("first", "as it was", "complete", 1)
    assert row["files"] == len(before) + 1
    file = srv.snapshots / f"{row['id']}.tar.zst"
    assert file.stat().st_size == row["bytes"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(srv.snapshots.stat().st_mode) == 0o700
    # holes take no place in it
    assert row["bytes"] < 64 << 20

    srv.out(box, "chmod -R u+rwX d2; rm -r d2 hard; echo new > other; "
                 "echo x > d3/e3/f3; touch soft fifo; chmod 700 d1")
    old = os.stat(srv.boxes / box).st_ino
    srv.berth_ok("sandbox", "restore", f"{box}+first", timeout=60)
    assert os.stat(srv.boxes / box).st_ino != old
    assert manifest(srv.boxes / box) == before
    assert os.stat(srv.boxes / box / "sparse").st_blocks < 1024
    assert srv.out(box, "cat d3/e3/f3 | wc -c") \
        == f"{before[b'd3/e3/f3'][4]}\n"
    assert not beside(srv)
    # GNU tar reads it too
    listed = run(["tar", "--zstd", "-tf", file]).stdout
    assert listed.count(b"\n") == row["files"]
    assert srv.json("sandbox", "forget", row["id"]) == {"ok": True}
    assert not file.exists() and not rows(srv, box)


def test_restore_into_a_new_sandbox(srv, box):
    srv.berth_ok("sandbox", "create", "--template", "own", box)
    srv.out(box, "echo one > a")
    snap = snapshot(srv, box)
    assert snap.startswith("snp-")
    got = srv.json("sandbox", "restore", snap, "--to", f"{box}-2")
    assert [(r["name"], r["template"], r["state"]) for r in got] \
        == [(f"{box}-2", "own", "running")]
    assert srv.out(f"{box}-2", "cat a; hostname") == f"one\n{box}-2\n"
    srv.out(f"{box}-2", "echo two > a")
    assert srv.out(box, "cat a") == "one\n"
    # its sandbox may be gone
    srv.berth_ok("sandbox", "rm", box)
    srv.berth_ok("sandbox", "restore", snap)
    assert srv.out(box, "cat a; pwd") == "one\n/workspace\n"
    srv.berth_ok("sandbox", "forget", snap)


@pytest.mark.parametrize("template", ["local", "own"])
def test_restore_ends_sessions_first(srv, box, template):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    srv.out(box, "echo 1 > a")
    snap = snapshot(srv, box)
    term = srv.term(box).ready()
    term.send("while :; do date +%N >> a; sleep 0.01; done\r")
    wait_for(lambda: len((srv.boxes / box / "a").read_text()) > 30)
    srv.berth_ok("sandbox", "restore", snap, timeout=60)
    assert not srv.sessions(box)
    assert (srv.boxes / box / "a").read_text() == "1\n"
    time.sleep(0.1)
    assert (srv.boxes / box / "a").read_text() == "1\n"
    assert srv.out(box, "cat a") == "1\n"
    srv.berth_ok("sandbox", "forget", snap)


def test_what_cannot_be_done_is_said(srv, box):
    def fails(code, *args):
        done = srv.berth("sandbox", *args)
        assert done.returncode == code, (args, done)
        return done.stderr.decode()

    assert "no sandbox" in fails(3, "snapshot", box)
    assert "no snapshot" in fails(3, "restore", "snp-0")
    assert "no snapshot" in fails(3, "forget", "nothing")
    srv.out(box, "true")
    assert "name" in fails(2, "snapshot", "--name", "a/b", box)
    assert "name" in fails(2, "snapshot", "--name", "snp-1", box)
    assert "at most" in fails(2, "snapshot", "-d", "x" * 300, box)
    first = snapshot(srv, box, "--name", "n")
    assert "has a snapshot n" in fails(4, "snapshot", "--name", "n", box)
    srv.out(f"{box}b", "true")
    other = snapshot(srv, f"{box}b", "--name", "n")
    assert "more than one" in fails(3, "restore", "n")
    assert "more than one" in fails(3, "forget", "snp-")
    for snap in (first, other):
        srv.berth_ok("sandbox", "forget", snap)
    assert not beside(srv)
    caps = {r["name"]: r["capabilities"]
            for r in srv.json("sandbox", "providers")}
    assert "snapshot" in caps["local"] and "snapshot" in caps["native"]
    assert "snapshot" not in caps["fake"]
    assert srv.berth("sandbox", "create", "--template", "fake",
                     f"{box}f").returncode == 1
    assert "unsupported: provider fake cannot" in fails(5, "snapshot",
                                                        f"{box}f")
    srv.berth("sandbox", "rm", f"{box}f")


def test_a_damaged_snapshot_changes_nothing(srv, box):
    srv.out(box, "echo now > a; head -c 300000 /dev/urandom > b")
    snap = snapshot(srv, box)
    file = srv.snapshots / f"{snap}.tar.zst"
    whole = file.read_bytes()
    srv.out(box, "echo later > a")
    for bad in (whole[:len(whole) // 2], b"", b"x" * 5000,
                whole[:1000] + bytes(1000) + whole[2000:]):
        file.write_bytes(bad)
        done = srv.berth("sandbox", "restore", snap)
        assert done.returncode == 1, done
        assert b"cannot restore" in done.stderr
        done = srv.berth("sandbox", "restore", snap, "--to", f"{box}new")
        assert done.returncode == 1, done
        assert srv.out(box, "cat a") == "later\n"
        wait_for(lambda: not beside(srv))
    wait_for(lambda: f"{box}new" not in
             [r["name"] for r in srv.json("sandbox", "ls")])
    file.unlink()
    assert b"No such file" in srv.berth("sandbox", "restore", snap).stderr
    srv.berth_ok("sandbox", "forget", snap)


def test_links_are_not_followed_whoever_moves_them_c14(srv, box):
    """A directory becomes a link to another place, and back, all the time."""
    secret = srv.public / f"secret-{box}"
    secret.mkdir()
    secret.chmod(0o755)
    for i in range(50):
        (secret / f"f{i}").write_text("SECRET")
    child = srv.spawn(box, f"""
mkdir -p real; for i in $(seq 50); do echo mine > real/f$i; done
ln -s {secret} link
python3 -c '
import ctypes, os
libc = ctypes.CDLL(None)
while True:
    libc.renameat2(-100, b"real", -100, b"link", 2)
'""")
    wait_for((srv.boxes / box / "link").exists)
    seen = 0
    for _ in range(8):
        snap = snapshot(srv, box)
        raw = run(["tar", "--zstd", "-xOf",
                   srv.snapshots / f"{snap}.tar.zst"]).stdout
        assert b"SECRET" not in raw
        # both names may have been the link when they were looked at
        seen += b"mine" in raw
        srv.berth_ok("sandbox", "forget", snap)
    assert seen
    child.kill()
    child.wait()


@pytest.fixture
def small_disks(fresh, as_root):
    """A server whose workspaces and snapshots are on small disks."""
    server = fresh(start=False, **SERVER)
    server.state.mkdir(mode=0o700)
    for path in (server.boxes, server.snapshots):
        path.mkdir()
        done = run(["mount", "-t", "tmpfs", "-o", "size=12m,mode=700",
                    "tmpfs", path])
        assert done.returncode == 0, done.stderr
    server.start()
    yield server
    server.stop()
    for path in (server.boxes, server.snapshots):
        run(["umount", "-l", path])


def test_full_disks_keep_nothing_half(small_disks, box):
    srv = small_disks
    blob(srv, box, 7)
    first = snapshot(srv, box)
    done = srv.berth("sandbox", "snapshot", box)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    assert [r["id"] for r in rows(srv)] == [first]
    assert not beside(srv)
    srv.out(box, "echo now > a")
    done = srv.berth("sandbox", "restore", first)
    assert done.returncode == 1
    assert b"No space left on device" in done.stderr
    wait_for(lambda: not beside(srv))
    assert srv.out(box, "cat a; wc -c < big") == f"now\n{7 << 20}\n"


# ---- killed in the middle ---------------------------------------------------------


def background(srv, *args):
    child = subprocess.Popen(
        [srv.build / "berth", "-S", srv.socket, *args],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE)
    return child


def finish(child):
    _, err = child.communicate(timeout=30)
    return child.returncode, err


@pytest.mark.parametrize("template", ["local", "own"])
def test_its_helper_is_killed(srv, box, template):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    blob(srv, box, 80)
    srv.out(box, "echo now > a")
    for _ in range(2):
        child = background(srv, "sandbox", "snapshot", box)
        os.kill(helper(srv, "snapshot", box), signal.SIGKILL)
        code, err = finish(child)
        assert code == 1 and b"ended without a word" in err
        assert not rows(srv, box) and not beside(srv)
        assert srv.out(box, "cat a") == "now\n"
    snap = snapshot(srv, box)
    srv.out(box, "echo later > a")
    for to in (box, f"{box}new"):
        child = background(srv, "sandbox", "restore", snap, "--to", to)
        os.kill(helper(srv, "unpack", to), signal.SIGKILL)
        code, err = finish(child)
        assert code == 1 and b"ended without a word" in err
        wait_for(lambda: not beside(srv))
        assert srv.out(box, "cat a") == "later\n"
    names = [r["name"] for r in srv.json("sandbox", "ls")]
    assert f"{box}new" not in names
    srv.berth_ok("sandbox", "restore", snap, timeout=60)
    assert srv.out(box, "cat a") == "now\n"
    srv.berth_ok("sandbox", "forget", snap)


@pytest.mark.parametrize("both", [False, True])
def test_berthd_is_killed(fresh, box, both):
    """And its helper with it: then nobody but the next one can undo it."""
    srv = fresh(**{**SERVER, "access__default_template": "own",
                   "session__on_shutdown": "keep"})
    blob(srv, box, 80)
    srv.out(box, "echo now > a")

    def cut(operation, *args):
        child = background(srv, "sandbox", *args)
        pid = helper(srv, operation, box)
        if both:
            os.kill(pid, signal.SIGSTOP)
        srv.kill()
        if both:
            os.kill(pid, signal.SIGKILL)
        assert finish(child)[0] != 0
        srv.start()
        wait_for(lambda: not procs.get(pid))
        wait_for(lambda: not beside(srv), what=lambda: beside(srv))

    cut("snapshot", "snapshot", box)
    assert not rows(srv)
    assert srv.out(box, "cat a") == "now\n"
    snap = snapshot(srv, box)
    srv.out(box, "echo later > a")
    cut("unpack", "restore", snap)
    assert srv.out(box, "cat a") == "later\n"
    srv.berth_ok("sandbox", "restore", snap, timeout=60)
    assert srv.out(box, "cat a") == "now\n"
    srv.berth_ok("sandbox", "rm", box)


# ---- standing still --------------------------------------------------------------


def can_suspend(srv):
    return any(r["name"] == "native" and "suspend" in r["capabilities"]
               for r in srv.json("sandbox", "providers"))


def test_a_snapshot_is_of_one_moment(srv, box):
    """Of two counters written in turn, neither is ahead by more than one."""
    if not can_suspend(srv):
        pytest.skip("explained: native sandboxes cannot stand still here")
    srv.berth_ok("sandbox", "create", "--template", "own", box)
    blob(srv, box, 30, "m")
    term = srv.term(box).ready()
    term.send("i=0; while :; do i=$((i+1)); echo $i > a; echo $i > z; done\r")
    wait_for((srv.boxes / box / "z").exists)
    for n in range(3):
        snap = snapshot(srv, box)
        srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}-{n}",
                     timeout=60)
        first, second = (
            int((srv.boxes / f"{box}-{n}" / name).read_text() or -1)
            for name in "az")
        assert first - second in (0, 1) or -1 in (first, second)
        srv.berth_ok("sandbox", "forget", snap)
    now = (srv.boxes / box / "z").read_text()
    wait_for(lambda: (srv.boxes / box / "z").read_text() not in ("", now))


def test_a_killed_helper_leaves_nothing_frozen(srv, box):
    if not can_suspend(srv):
        pytest.skip("explained: native sandboxes cannot stand still here")
    srv.berth_ok("sandbox", "create", "--template", "own", box)
    blob(srv, box, 80)
    term = srv.term(box).ready()
    term.send("while :; do date +%s%N > z; sleep 0.02; done\r")
    wait_for((srv.boxes / box / "z").exists)
    child = background(srv, "sandbox", "snapshot", box)
    os.kill(helper(srv, "snapshot", box), signal.SIGKILL)
    assert finish(child)[0] == 1
    now = (srv.boxes / box / "z").read_text()
    wait_for(lambda: (srv.boxes / box / "z").read_text() not in ("", now))


def test_many_at_once(srv, box):
    """Two of one sandbox are one too many; two of two are not."""
    for n in range(2):
        blob(srv, f"{box}{n}", 40)
    answers = []

    def ask(name):
        answers.append((name, srv.berth("sandbox", "snapshot", name,
                                        timeout=60)))

    threads = [threading.Thread(target=ask, args=(f"{box}{n % 2}",))
               for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    good = [a for a in answers if a[1].returncode == 0]
    assert {a[0] for a in good} == {f"{box}0", f"{box}1"}
    assert all(a[1].returncode in (0, 4) for a in answers)
    for _, done in good:
        srv.berth_ok("sandbox", "forget", done.stdout.decode().strip())
    assert not beside(srv)
