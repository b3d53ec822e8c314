"""sandbox.uid_range: every new sandbox of a root berthd has a uid for itself,
keeps it, and gives it back when it is removed.
"""

import os

import pytest

from berth import IS_ROOT, wait_for

FIRST, LAST = 310000, 310003

SERVER = {
    "access__default_template": "native",
    "sandbox__uid_range": f"{FIRST}-{LAST}",
    "template plain__provider": "local",
    "template ready__provider": "native",
    "template ready__pool_size": "0",
}

pytestmark = pytest.mark.skipif(
    not IS_ROOT, reason="explained: only a berthd of root gives out uids")


def ids(srv, box):
    """uid, gid and groups of what runs there."""
    return srv.out(box, "id -u; id -g").split()


def uid(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0]["uid"]


@pytest.fixture
def remove(srv):
    """Gives the uids of a test back."""
    boxes = []
    yield boxes.append
    for box in boxes:
        srv.berth("sandbox", "rm", box)


@pytest.mark.parametrize("template", ["native", "plain"])
def test_every_sandbox_has_a_uid_for_itself(srv, box, remove, template):
    seen = set()
    for name in (box, f"{box}-b"):
        remove(name)
        srv.berth_ok("sandbox", "create", "--template", template, name)
        own = uid(srv, name)
        assert FIRST <= own <= LAST
        assert ids(srv, name) == [str(own), str(own)]
        srv.out(name, "umask 077; echo mine > file")
        st = os.stat(srv.boxes / name / "file")
        assert (st.st_uid, st.st_gid) == (own, own)
        assert os.stat(srv.boxes / name).st_uid == own
        assert srv.sql("SELECT uid FROM sandbox WHERE name = "
                       f"'{name}'") == [{"uid": own}]
        seen.add(own)
    assert len(seen) == 2
    if template == "plain":
        other = srv.boxes / f"{box}-b"
        done = srv.ssh(box, f"cat {other}/file; ls {other}")
        assert b"mine" not in done.stdout and b"ermission" in done.stderr


def test_a_used_up_range_is_said_and_a_removed_sandbox_gives_its_uid_back(
        srv, box, remove):
    names = [f"{box}-{i}" for i in range(LAST - FIRST + 1)]
    for name in names:
        remove(name)
        srv.berth_ok("sandbox", "create", name)
    assert sorted(uid(srv, n) for n in names) == [*range(FIRST, LAST + 1)]
    done = srv.ssh(f"{box}-more", "true")
    assert done.returncode != 0
    assert (f"all uids of sandbox.uid_range, {FIRST} to {LAST}, are in use"
            in done.stderr.decode())
    given_back = uid(srv, names[1])
    srv.berth_ok("sandbox", "rm", names[1])
    remove(f"{box}-more")
    srv.berth_ok("sandbox", "create", f"{box}-more")
    assert uid(srv, f"{box}-more") == given_back


def test_members_of_a_pool_have_uids_of_their_own(srv, box, remove):
    """Whoever claims one has its uid; all that wait use up the range."""
    def pool():
        return srv.json("sandbox", "pool", "get", "ready")[0]

    srv.berth_ok("sandbox", "pool", "scale", "ready", "2")
    try:
        wait_for(lambda: pool()["ready"] == 2)
        for name in (box, f"{box}-b"):
            remove(name)
            srv.berth_ok("sandbox", "create", "--template", "ready", name)
            assert ids(srv, name) == [str(uid(srv, name))] * 2
            st = os.stat(srv.boxes / name)
            assert st.st_uid == uid(srv, name)
            wait_for(lambda: pool()["ready"] == 2)
        assert pool()["allocated"] == 2
        assert uid(srv, box) != uid(srv, f"{box}-b")
        done = srv.berth("sandbox", "create", f"{box}-c")
        assert b"are in use" in done.stderr
    finally:
        srv.berth_ok("sandbox", "pool", "scale", "ready", "0")
    wait_for(lambda: pool()["ready"] == 0)
    remove(f"{box}-c")
    wait_for(lambda: srv.berth("sandbox", "create", f"{box}-c").returncode
             == 0)


def test_a_terminal_files_and_forwards_are_of_that_uid(srv, box, remove):
    remove(box)
    term = srv.term(box)
    term.ready()
    own = uid(srv, box)
    term.send(b"id -u; stat -c %u $(tty)\n")
    term.expect(rf"{own}\s+{own}")
    term.close()
    srv.out(box, "mkdir dir")
    done = srv.berth("sandbox", "cp", "/etc/hostname", f"{box}:dir/")
    assert done.returncode == 0, done.stderr
    assert os.stat(srv.boxes / box / "dir/hostname").st_uid == own


def test_it_stays_over_restarts_and_without_the_range(fresh, box):
    srv = fresh(**SERVER)
    try:
        srv.out(box, "echo kept > file")
        own = uid(srv, box)
        srv.stop()
        srv.options["sandbox.uid_range"] = None
        srv.write_conf()
        srv.start()
        assert uid(srv, box) == own
        assert srv.out(box, "id -u; cat file").split() == [str(own), "kept"]
        srv.out(f"{box}-b", "true")
        assert uid(srv, f"{box}-b") is None
    finally:
        srv.berth("sandbox", "rm", box)
        srv.berth("sandbox", "rm", f"{box}-b")


def test_a_snapshot_becomes_the_new_owners(srv, box, remove):
    remove(box)
    remove(f"{box}-b")
    srv.out(box, "echo mine > file")
    snapshot = srv.json("sandbox", "snapshot", box)[0]["id"]
    srv.berth_ok("sandbox", "restore", "--to", f"{box}-b", snapshot)
    assert uid(srv, f"{box}-b") != uid(srv, box)
    assert srv.out(f"{box}-b", "stat -c %u file; cat file").split() == [
        str(uid(srv, f"{box}-b")), "mine"]
