"""Pools: sandboxes that are made ahead. Who takes one cannot tell it from one
that was made for him; nobody else can reach one; none is ever left behind,
whoever is killed, and whatever becomes of the configuration.
"""

import json
import os
import pathlib
import signal
import time

import pytest

import procs
from berth import BUILD, IS_ROOT, run, wait_for

SIZE = 2
SERVER = {
    "access__default_template": "warm",
    "template warm__pool_size": str(SIZE),
    "template warm__memory": "64M",
    "template warm__pids": "50",
    "template warm__env": "COLOUR=green",
    "template cold__memory": "64M",
    "template cold__pids": "50",
    "template cold__env": "COLOUR=green",
    "template plain__provider": "local",
    "template broken__rootfs": "/nonexistent/rootfs",
}


def parse(path):
    text = path.read_text()
    return dict(line.split(" ", 1) for line in text.splitlines())


def record(srv, box):
    return parse(srv.boxes / f".{box}.box")


def members(srv):
    """The records of what waits, by id."""
    found = {}
    for path in srv.boxes.glob(".pool/.*.box"):
        try:
            found[path.name[1:-4]] = parse(path)
        except FileNotFoundError:
            pass  # just claimed
    return found


def pool(srv, template="warm"):
    return srv.json("sandbox", "pool", "get", template)[0]


def groups_of(folder):
    """Control groups that are named as those of sandboxes, or members, there."""
    number = 2166136261
    for byte in str(folder).encode():
        number = ((number ^ byte) * 16777619) & 0xffffffff
    return [name for _, names, _ in os.walk("/sys/fs/cgroup")
            for name in names if name.startswith(f"berth-{number:08x}-")]


SEEN = {}  # of each server, the members that there were


@pytest.fixture(autouse=True, scope="session")
def nothing_stays():
    """Whatever a server of this process made is gone at the end."""
    yield
    for boxes, rows in SEEN.items():
        assert gone(rows) and not groups_of(f"{boxes}/.pool")


def full(srv, template="warm", size=SIZE):
    """Waits until the pool is as it shall be, and nothing is left beside."""
    def check():
        rows = {r["template"]: r["ready"]
                for r in srv.json("sandbox", "pool", "ls")}
        files = [p.name for p in (srv.boxes / ".pool").glob(".*")]
        return (rows.get(template) == size and
                len(files) == sum(rows.values()) and
                all(f.endswith(".box") for f in files))

    wait_for(check, 20, f"{size} members of {template}")
    found = members(srv)
    SEEN.setdefault(srv.boxes, []).extend(found.values())
    return found


def groups(rows):
    return [v for r in rows for k, v in r.items() if k.startswith("cgroup")]


def gone(rows):
    """True once nothing is left of these members."""
    return not any(procs.is_alive(int(r["pid"])) for r in rows) and not any(
        os.path.exists(g) for g in groups(rows))


def phase(srv, box):
    rows = [r for r in srv.json("sandbox", "ls") if r["name"] == box]
    return rows[0]["state"] if rows else None


def helpers(srv):
    """The jobs of a server's berthd, dead or alive, by operation."""
    return [p for p in procs.all_procs()
            if p.link("exe") == str(BUILD / "berth-sandbox") and
            p.ppid == srv.proc.pid]


# ---- claims ----------------------------------------------------------------

# What there is to see of a sandbox, without what is one's own by chance.
LOOK = r"""
import json, os, socket, sys
def read(path):
    try:
        with open(path) as f:
            return f.read()
    except OSError as e:
        return str(e.strerror)
name = socket.gethostname()
mine = lambda s: s.replace(name, "NAME")
mounts = []
for line in read("/proc/self/mountinfo").splitlines():
    left, right = line.split(" - ")
    f = left.split()
    mounts.append([mine(f[3]), f[4], f[5], right.split()[0]])
status = dict(l.split(":\t", 1) for l in read("/proc/self/status").splitlines()
              if ":\t" in l)
tree = [[d, sorted(n), sorted(os.lstat(os.path.join(d, x)).st_mode
                              for x in n + f)]
        for d, n, f in os.walk("/") if d.count("/") < 3 and
        not d.startswith(("/proc", "/usr", "/opt"))]
print(json.dumps({
    "mounts": mounts, "tree": sorted(tree),
    "hosts": mine(read("/etc/hosts")),
    "hostname": mine(read("/etc/hostname")), "is_named": name == sys.argv[1],
    "passwd": read("/etc/passwd"), "cgroup": read("/proc/self/cgroup"),
    "uid_map": read("/proc/self/uid_map"),
    "gid_map": read("/proc/self/gid_map"),
    "init": read("/proc/1/comm"),
    "init_command": read("/proc/1/cmdline").strip("\0"),
    "init_status": {k: v for k, v in (
        l.split(":\t", 1) for l in read("/proc/1/status").splitlines()
        if ":\t" in l) if k.startswith(("Cap", "Seccomp", "NoNew", "Uid"))},
    "status": {k: v for k, v in status.items() if k.startswith(
        ("Cap", "Seccomp", "NoNew", "Uid", "Gid"))},
    "limits": read("/proc/self/limits"),
    "network": sorted(os.listdir("/sys/class/net"))
        if os.path.isdir("/sys/class/net") else read("/proc/net/dev")[:60],
    "etc": [read("/etc/" + n)[:80] for n in ("profile", "nsswitch.conf")],
    "writes": [os.access(p, os.W_OK) for p in
               ("/", "/etc", "/etc/hosts", "/etc/hostname", "/workspace",
                "/tmp", "/dev", "/usr")],
    "workspace": [os.getcwd(), os.listdir(".")],
    "env": {k: mine(v) for k, v in os.environ.items() if k not in (
        "BERTH_SESSION", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY")},
}))
"""


def look(srv, box):
    done = srv.ssh(box, f"python3 - {box}", input=LOOK.encode())
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_member_becomes_the_sandbox_and_another_takes_its_place(srv, box):
    before = full(srv)
    assert srv.out(box, "hostname; echo x > kept; ls") == f"{box}\nkept\n"
    got = record(srv, box)
    assert got["pool"] in before and got["pid"] == before[got["pool"]]["pid"]
    row = pool(srv)
    assert row["allocated"] == 1 and row["target"] == SIZE
    assert set(row) == {"template", "provider", "ready", "allocated", "target",
                        "configured", "detail"}
    after = full(srv)
    assert srv.json("sandbox", "pool", "ls") == [pool(srv)]
    assert got["pool"] not in after and len(after) == SIZE
    # What lists sandboxes lists nobody's.
    assert [r["name"] for r in srv.json("sandbox", "ls")] == [box]
    assert srv.sql("SELECT name FROM sandbox WHERE state <> 'gone'") == [
        {"name": box}]
    # Its workspace is of this host as any other's.
    assert (srv.boxes / box / "kept").read_text() == "x\n"
    srv.berth_ok("sandbox", "rm", box)
    assert gone([got])
    assert pool(srv)["allocated"] == 0


def test_nothing_tells_a_member_from_one_made_cold(srv, box):
    full(srv)
    srv.berth_ok("sandbox", "create", box)
    srv.berth_ok("sandbox", "create", "--template", "cold", f"{box}-c")
    assert "pool" in record(srv, box) and "pool" not in record(
        srv, f"{box}-c")
    warm, cold = look(srv, box), look(srv, f"{box}-c")
    assert warm["is_named"] and warm["workspace"] == ["/workspace", []]
    # Their order is that of numbers which the kernel gave.
    warm["mounts"].sort()
    cold["mounts"].sort()
    for key, value in cold.items():
        assert warm[key] == value, key
    rows = {r["name"]: r for r in srv.json("sandbox", "ls")}
    for key in ("provider", "state", "detail", "unenforced"):
        assert rows[box][key] == rows[f"{box}-c"][key], key
    # Groups are made alike, and hold what they should.
    a, b = record(srv, box), record(srv, f"{box}-c")
    assert a["pids"] == b["pids"] and a["flags"] == b["flags"]
    assert {k for k in a if k != "pool"} == set(b)
    for kind in ("cgroup", "cgroup-memory", "cgroup-pids", "cgroup-cpu"):
        for name in ("memory.max", "memory.limit_in_bytes", "pids.max",
                     "cpu.max", "cpu.cfs_quota_us"):
            values = [pathlib.Path(r[kind], name) for r in (a, b)
                      if kind in r]
            values = {v.read_text() for v in values if v.exists()}
            assert len(values) <= 1, name
    for name in (box, f"{box}-c"):
        srv.berth_ok("sandbox", "rm", name)


def test_what_can_be_done_to_a_sandbox_can_be_done_to_this_one(srv, box):
    """Limits, suspend, snapshot, loss and a new beginning, teardown."""
    full(srv)
    srv.out(box, "echo one > file")
    first = record(srv, box)
    assert "pool" in first
    if IS_ROOT:
        done = srv.ssh(box, "python3 -c 'x = bytearray(200 << 20)'")
        assert done.returncode not in (0, 1), done
        srv.berth_ok("sandbox", "suspend", box)
        assert phase(srv, box) == "suspended"
        srv.berth_ok("sandbox", "resume", box)
    stats = [r for r in srv.json("sandbox", "stats", box)][0]
    assert stats["processes_limit"] == 50
    snapshot = srv.berth_ok("sandbox", "snapshot", box).strip()
    srv.out(box, "echo two > file")
    srv.berth_ok("sandbox", "restore", snapshot)
    assert srv.out(box, "cat file; hostname") == f"one\n{box}\n"
    # Whoever loses it gets the same files in another one.
    os.kill(int(record(srv, box)["pid"]), signal.SIGKILL)
    wait_for(lambda: phase(srv, box) == "failed", 15, "phase failed")
    assert srv.out(box, "cat file; hostname") == f"one\n{box}\n"
    second = record(srv, box)
    assert second["pid"] != first["pid"]
    assert gone([first])
    srv.berth_ok("sandbox", "rm", box)
    srv.berth_ok("sandbox", "forget", snapshot)
    assert gone([second]) and not (srv.boxes / box).exists()


def test_more_than_wait_are_made_cold(srv, box):
    full(srv)
    before = pool(srv)["allocated"]
    names = [f"{box}-{i}" for i in range(SIZE + 3)]
    children = [srv.spawn(n, "hostname; pwd") for n in names]
    for name, child in zip(names, children):
        out, err = child.communicate(timeout=30)
        assert (child.returncode, out.decode()) == (
            0, f"{name}\n/workspace\n"), err
    claimed = [r.get("pool") for r in (record(srv, n) for n in names)]
    took = [c for c in claimed if c]
    assert len(took) >= SIZE and len(set(took)) == len(took)
    assert pool(srv)["allocated"] == before + len(took)
    for name in names:
        srv.berth_ok("sandbox", "rm", name)
    full(srv)


def test_nobody_reaches_a_member(srv, box):
    """Its id is a name like any other: that of a new sandbox."""
    name, row = next(iter(full(srv).items()))
    assert srv.out(name, "hostname; ls -A") == f"{name}\n"
    assert record(srv, name)["pid"] != row["pid"] or (
        record(srv, name)["pool"] == name)
    srv.berth_ok("sandbox", "rm", name)
    full(srv)
    for verb in ("suspend", "rm", "snapshot"):
        done = srv.berth("sandbox", verb, next(iter(members(srv))))
        assert done.returncode == 3, (verb, done.stderr)
    # From inside nothing of it is to be seen.
    done = srv.ssh(box, f"ls -a {srv.boxes}/.pool; cat /proc/[0-9]*/comm")
    assert done.stdout.decode().split().count("berth-init") == 1
    assert b"No such file or directory" in done.stderr
    srv.berth_ok("sandbox", "rm", box)


# ---- the pool --------------------------------------------------------------


def test_scale_adds_and_removes(srv):
    full(srv)
    row = srv.json("sandbox", "pool", "scale", "warm", "4")[0]
    assert (row["target"], row["configured"]) == (4, SIZE)
    more = full(srv, size=4)
    assert len(more) == 4
    srv.berth_ok("sandbox", "pool", "scale", "warm", "0")
    full(srv, size=0)
    assert not members(srv) and gone(more.values())
    audit = srv.sql("SELECT detail FROM audit WHERE event = 'pool_scale'"
                    " ORDER BY id")
    assert [a["detail"] for a in audit][-2:] == ["warm: 4", "warm: 0"]
    # A template that has no pool gets one.
    srv.berth_ok("sandbox", "pool", "scale", "cold", "1")
    full(srv, "cold", 1)
    assert [r["template"] for r in srv.json("sandbox", "pool", "ls")] == [
        "warm", "cold"]
    # Until the configuration is read again.
    srv.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: pool(srv)["target"] == SIZE, 10)
    full(srv)
    assert [r["template"] for r in srv.json("sandbox", "pool", "ls")] == [
        "warm"]


@pytest.mark.parametrize("args, code, why", [
    (["get", "none"], 3, "there is no template none"),
    (["scale", "none", "1"], 3, "there is no template none"),
    (["get", "plain"], 5, "unsupported: provider local cannot keep a pool"),
    (["scale", "plain", "1"], 5, "unsupported: provider local cannot"),
    (["scale", "warm", "1001"], 2, "a pool has 0 to 1000 members"),
    (["scale", "warm", "-1"], 2, ""),
    (["scale", "warm", "many"], 2, "is not a number of sandboxes"),
    (["scale", "warm"], 2, "usage: berth sandbox pool"),
    (["get"], 2, "usage: berth sandbox pool"),
    ([], 2, "usage: berth sandbox pool"),
    (["get", "\udcff"], 2, "UTF-8"),
])
def test_what_cannot_be_is_said(srv, args, code, why):
    done = srv.berth("sandbox", "pool", *args)
    assert done.returncode == code, done.stderr
    assert why in done.stderr.decode()
    assert pool(srv)["target"] == SIZE


def test_what_does_not_work_is_said_and_tried_again(srv):
    srv.berth_ok("sandbox", "pool", "scale", "broken", "1")
    row = wait_for(
        lambda: (lambda r: r["detail"] and r)(pool(srv, "broken")), 10)
    assert "rootfs" in row["detail"] and "tried again in" in row["detail"]
    assert row["ready"] == 0
    wait_for(lambda: srv.log().count("pool_not_filled template=broken") > 1,
             20, "another try")
    # It keeps nobody else waiting.
    full(srv)
    srv.berth_ok("sandbox", "pool", "scale", "broken", "0")
    assert pool(srv, "broken")["detail"] is None
    wait_for(lambda: not helpers(srv), 10)
    full(srv)


def test_a_member_that_ends_is_replaced(srv):
    before = full(srv)
    name, row = next(iter(before.items()))
    os.kill(int(row["pid"]), signal.SIGKILL)
    wait_for(lambda: gone([row]), 10, "what it left is removed")
    after = full(srv)
    assert name not in after and set(before) - {name} < set(after)


# ---- ends ------------------------------------------------------------------


def test_members_outlive_berthd_and_an_upgrade(fresh, box):
    srv = fresh(session__on_shutdown="keep", **SERVER)
    before = full(srv)
    srv.berth_ok("upgrade")
    assert full(srv) == before
    srv.kill()
    srv.start()
    assert full(srv) == before
    assert srv.stop() == 0
    srv.start()
    assert full(srv) == before
    assert srv.out(box, "hostname") == f"{box}\n"
    got = record(srv, box)
    assert got["pool"] in before
    # What it was is known to the next one.
    srv.kill()
    srv.start()
    assert pool(srv)["allocated"] == 1
    # One that died while nobody looked, and one whose maker did.
    now = full(srv)
    srv.kill()
    name, row = next(iter(now.items()))
    os.kill(int(row["pid"]), signal.SIGKILL)
    other = [n for n in now if n != name][0]
    (srv.boxes / ".pool" / f".{other}.lock").touch()
    srv.start()
    after = full(srv)
    assert not set(after) & {name, other}
    assert gone(now.values())
    # Of another configuration, and of none.
    srv.options["template warm.pids"] = "60"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    wait_for(lambda: gone(after.values()), 20, "members of the former one")
    last = full(srv)
    assert {r["pids"] for r in last.values()} == {"60"}
    srv.kill()
    del srv.options["template warm.pool_size"]
    srv.write_conf()
    srv.start()
    wait_for(lambda: gone(last.values()), 20, "members of no pool")
    assert srv.json("sandbox", "pool", "ls") == []
    srv.berth_ok("sandbox", "rm", box)
    srv.options["session.on_shutdown"] = "kill"
    srv.options["template warm.pool_size"] = "3"
    srv.write_conf()
    srv.proc.send_signal(signal.SIGHUP)
    # An end that ends sandboxes ends these too.
    last = full(srv, size=3)
    assert srv.stop() == 0
    assert gone(last.values()) and not groups_of(srv.boxes / ".pool")
    assert not list((srv.boxes / ".pool").iterdir())


@pytest.mark.parametrize("delay", [0, 0.003, 0.01, 0.03])
@pytest.mark.parametrize("who", ["berthd", "all"])
def test_killed_in_the_middle_leaves_nothing(fresh, box, delay, who):
    """Of a claim and of what fills the pool, berthd alone or with its jobs."""
    srv = fresh(**SERVER)
    before = full(srv)
    children = [srv.spawn(f"{box}-{i}", "pwd") for i in range(3)]
    wait_for(lambda: "sandbox_begin" in srv.log(), 10)
    time.sleep(delay)
    jobs = helpers(srv) if who == "all" else []
    srv.kill()
    procs.kill(jobs)
    for child in children:
        child.communicate(timeout=30)
    known = {**before, **members(srv)}
    srv.start()
    rows = srv.json("sandbox", "ls")
    for r in rows:
        assert srv.out(r["name"], "hostname") == r["name"] + "\n"
    now = full(srv)
    used = [record(srv, r["name"]) for r in rows]
    alive = {r["pid"] for r in used} | {r["pid"] for r in now.values()}
    wait_for(lambda: gone([r for r in known.values()
                           if r["pid"] not in alive]), 15)
    for r in rows:
        srv.berth_ok("sandbox", "rm", r["name"])
    assert gone(used)
    last = full(srv)
    assert srv.stop() == 0
    assert gone([*last.values(), *now.values(), *known.values()])
    assert not groups_of(srv.boxes / ".pool") and not groups_of(srv.boxes)
    assert not list((srv.boxes / ".pool").iterdir())


@pytest.mark.ordinary
def test_a_pool_of_who_cannot_is_refused(fresh):
    srv = fresh(start=False, **{"template x__provider": "local",
                                "template x__pool_size": "1"})
    done = run([BUILD / "berthd", "-t", "-c", srv.conf])
    assert done.returncode != 0
    assert b"template x.pool_size: provider local cannot keep a pool" in (
        done.stderr)


def test_an_ordinary_user_has_pools_too(fresh, box):
    if not IS_ROOT:
        pytest.skip("explained: all other tests here are that user's")
    srv = fresh(start=False, **SERVER)
    srv.prefix = ["setpriv", "--reuid", "nobody", "--regid", "nogroup",
                  "--clear-groups"]
    run(["chown", "-R", "nobody:nogroup", srv.dir]).check_returncode()
    srv.start()
    before = full(srv)
    assert srv.out(box, "id -u; hostname; pwd; echo x > x; cat x") == (
        f"65534\n{box}\n/workspace\nx\n")
    assert record(srv, box)["pool"] in before
    row = [r for r in srv.json("sandbox", "ls") if r["name"] == box][0]
    assert row["unenforced"] == ["memory"]
    srv.berth_ok("sandbox", "rm", box)


def test_a_size_and_a_root_of_its_own_go_with_a_pool(fresh, box):
    """The workspace that is moved in may be a file system."""
    if not IS_ROOT or not os.path.exists("/dev/loop-control"):
        pytest.skip("explained: file systems in files are for root")
    srv = fresh(**{**SERVER, "template warm__workspace_size": "16M",
                   "template warm__init": "echo made > by-init"})
    before = full(srv)
    assert srv.out(box, "cat by-init; df --output=target,fstype . | tail -1"
                   ).split() == ["made", "/workspace", "ext4"]
    assert record(srv, box)["pool"] in before
    done = srv.ssh(box, "head -c 64M /dev/zero > big")
    assert done.returncode != 0 and b"No space left" in done.stderr
    srv.berth_ok("sandbox", "rm", box)
    assert not [m for m in open("/proc/self/mountinfo", encoding="utf-8")
                if str(srv.dir) in m]
