"""Workspaces of a size: a file system of their own, which snapshots and restores
treat as any other workspace, and which grows with its template but never loses
what is in it.
"""

import os
import signal
import subprocess

import pytest

import procs
from berth import wait_for
from test_snapshot import background, beside, finish, helper, rows, snapshot

SERVER = {
    "access__default_template": "plain",
    "template plain__provider": "native",
    "template plain__pids": "200",
    "template small__workspace_size": "16M",
    "template wide__workspace_size": "64M",
    "template grows__workspace_size": "16M",
    "template turns__pids": "200",
}


@pytest.fixture(autouse=True)
def loops(as_root):
    if not os.path.exists("/dev/loop-control") or \
            not os.path.exists("/sbin/mkfs.ext4"):
        pytest.skip("explained: there are no loop devices or no mkfs.ext4")


def create(srv, box, template):
    srv.berth_ok("sandbox", "create", "--template", template, box)
    detail = row(srv, box)["detail"] or ""
    if template != "turns" and "workspace_size" in detail:
        srv.berth_ok("sandbox", "rm", box)
        pytest.skip("explained: no loop device can be taken here")


def row(srv, box):
    return next((r for r in srv.json("sandbox", "ls") if r["name"] == box),
                None)


def image(srv, box):
    return srv.boxes / f".{box}.img"


def room(srv, box):
    """MiB of its file system."""
    return int(srv.out(box, "df -m --output=size . | tail -1"))


def kill_first(srv, box):
    """The sandbox is lost; what it was is begun again by who comes next."""
    record = (srv.boxes / f".{box}.box").read_text()
    pid = dict(line.split(" ", 1) for line in record.splitlines())["pid"]
    subprocess.run(["kill", "-9", pid], check=True)
    wait_for(lambda: row(srv, box)["state"] == "failed")


def mounts():
    with open("/proc/mounts", encoding="utf-8") as f:
        return f.read()


def loops_of(srv, box):
    """Loop devices that still hold an image of BOX."""
    found = []
    for name in os.listdir("/sys/block"):
        try:
            with open(f"/sys/block/{name}/loop/backing_file",
                      encoding="utf-8") as f:
                if str(srv.boxes / f".{box}.") in f.read():
                    found.append(name)
        except OSError:
            continue
    return found


def test_restore_into_it_and_into_others(srv, box):
    create(srv, box, "small")
    srv.out(box, "echo one > a; mkdir d; ln a d/hard; chmod 1755 d")
    snap = snapshot(srv, box)
    srv.out(box, "echo two > a; head -c 12M /dev/urandom > big")
    old = image(srv, box).stat().st_ino
    srv.berth_ok("sandbox", "restore", snap)
    assert srv.out(box, "cat a d/hard; stat -c %a d; ls -A") \
        == "one\none\n1755\na\nd\n"
    assert image(srv, box).stat().st_ino != old
    assert room(srv, box) < 16 and not row(srv, box)["detail"]
    # there is room for as much as before, and no more
    srv.out(box, "head -c 12M /dev/urandom > big")
    assert srv.ssh(box, "head -c 12M /dev/urandom > b2").returncode == 1
    assert not beside(srv)
    # the new one is of its template's size, whatever the old one was
    srv.berth_ok("sandbox", "create", "--template", "wide", f"{box}w")
    srv.out(f"{box}w", "echo other > b")
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}w")
    assert srv.out(f"{box}w", "cat a; ls -A") == "one\na\nd\n"
    assert 48 < room(srv, f"{box}w") < 64
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}n")
    assert srv.out(f"{box}n", "cat a") == "one\n"
    assert room(srv, f"{box}n") < 16
    srv.berth_ok("sandbox", "create", "--template", "plain", f"{box}p")
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}p")
    assert srv.out(f"{box}p", "cat a") == "one\n"
    assert not image(srv, f"{box}p").exists()
    for name in (box, f"{box}w", f"{box}n", f"{box}p"):
        srv.berth_ok("sandbox", "rm", name)
        assert not image(srv, name).exists() and f"/{name} " not in mounts()
        wait_for(lambda n=name: not loops_of(srv, n))
    srv.berth_ok("sandbox", "forget", snap)


def test_one_that_is_too_small_says_so_and_stays(srv, box):
    create(srv, box, "wide")
    srv.out(box, "head -c 30M /dev/urandom > big; echo first > a")
    snap = snapshot(srv, box)
    create(srv, f"{box}s", "small")
    srv.out(f"{box}s", "echo mine > a")
    done = srv.berth("sandbox", "restore", snap, "--to", f"{box}s")
    assert done.returncode == 1
    assert (b"its files need more than the 16 MiB that the workspace may hold "
            b"(workspace_size)") in done.stderr
    wait_for(lambda: not beside(srv))
    assert srv.out(f"{box}s", "cat a") == "mine\n"
    wait_for(lambda: len(loops_of(srv, f"{box}s")) == 1)
    # full itself, it can still be copied, and put back
    assert srv.ssh(f"{box}s", "cat /dev/zero > full").returncode == 1
    full = snapshot(srv, f"{box}s")
    srv.out(f"{box}s", "rm full")
    srv.berth_ok("sandbox", "restore", full)
    assert srv.out(f"{box}s", "cat a; test -s full && echo full") \
        == "mine\nfull\n"
    for name in (box, f"{box}s"):
        srv.berth_ok("sandbox", "rm", name)
    for name in (snap, full):
        srv.berth_ok("sandbox", "forget", name)


def test_one_that_is_not_mounted_is_copied_all_the_same(srv, box):
    """After a boot there is the image, and nothing over the directory."""
    create(srv, box, "small")
    srv.out(box, "echo kept > a")
    kill_first(srv, box)
    subprocess.run(["umount", srv.boxes / box], check=True)
    snap = snapshot(srv, box)
    assert rows(srv, box)[0]["files"] == 2
    srv.berth_ok("sandbox", "restore", snap, "--to", f"{box}n")
    assert srv.out(f"{box}n", "cat a") == "kept\n"
    assert srv.out(box, "cat a") == "kept\n"
    srv.berth_ok("sandbox", "rm", box)
    srv.berth_ok("sandbox", "rm", f"{box}n")
    srv.berth_ok("sandbox", "forget", snap)


def test_its_helper_is_killed(srv, box):
    create(srv, box, "wide")
    srv.out(box, "head -c 40M /dev/urandom > big; echo now > a", timeout=60)
    snap = snapshot(srv, box)
    srv.out(box, "echo later > a")
    child = background(srv, "sandbox", "restore", snap)
    pid = helper(srv, "unpack", box)
    wait_for(lambda: (srv.boxes / f".{box}.fresh").exists()
             or not procs.get(pid))
    os.kill(pid, signal.SIGKILL)
    code, err = finish(child)
    assert code == 1 and b"ended without a word" in err
    wait_for(lambda: not beside(srv))
    wait_for(lambda: len(loops_of(srv, box)) == 1)
    assert srv.out(box, "cat a") == "later\n"
    srv.berth_ok("sandbox", "restore", snap, timeout=60)
    assert srv.out(box, "cat a") == "now\n"
    srv.berth_ok("sandbox", "rm", box)
    srv.berth_ok("sandbox", "forget", snap)


def test_the_templates_size_changes(fresh, box):
    """It grows with the next start. It never shrinks by itself: that is said,
    and a restore does it. A plain one becomes an image by a restore."""
    srv = fresh(**SERVER)
    create(srv, box, "grows")
    srv.out(box, "head -c 10M /dev/urandom > big; sha256sum big > sum")
    srv.berth_ok("sandbox", "create", "--template", "turns", f"{box}t")
    srv.out(f"{box}t", "echo plain > a")
    assert room(srv, box) < 16

    def restart(size):
        kill_first(srv, box)
        srv.stop()
        srv.options["template grows.workspace_size"] = size
        srv.options["template turns.workspace_size"] = "32M"
        srv.write_conf()
        srv.start()

    restart("300M")
    assert srv.out(box, "sha256sum -c --quiet sum && echo same") == "same\n"
    assert 250 < room(srv, box) < 300
    srv.out(box, "head -c 200M /dev/zero > more; rm more", timeout=60)
    assert not row(srv, box)["detail"]
    snap = snapshot(srv, box)
    restart("24M")
    assert 250 < room(srv, box)
    assert "workspace_size" in row(srv, box)["detail"]
    assert "keeps its 300 MiB: it is made smaller only by a restore" \
        in srv.log()
    srv.berth_ok("sandbox", "restore", snap)
    assert room(srv, box) < 24 and not row(srv, box)["detail"]
    assert srv.out(box, "sha256sum -c --quiet sum && echo same") == "same\n"
    snap = snapshot(srv, f"{box}t")
    srv.berth_ok("sandbox", "restore", snap)
    assert srv.out(f"{box}t", "cat a") == "plain\n"
    assert 20 < room(srv, f"{box}t") < 32
    for name in (box, f"{box}t"):
        srv.berth_ok("sandbox", "rm", name)
        assert not (srv.boxes / name).exists() and f"/{name} " not in mounts()
