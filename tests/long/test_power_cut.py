"""The power fails while people work: what was on the disk at that moment is
all that is left, sometimes less than that. A berthd on it starts, calls every
session lost, mends the recordings and serves. BERTH_CUTS=20 says how often,
BERTH_SEED repeats a run's choices. The state that is left of one cut is the
one that the next load works on.
"""

import os
import pathlib
import random
import shutil
import sys
import time

import pytest

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

import procs  # noqa: E402
from berth import RELEASE, Failure, Server, wait_for  # noqa: E402
from consistency import LIVE, Checker, broken_lines  # noqa: E402
from load import Client, counting  # noqa: E402

CUTS = int(os.environ.get("BERTH_CUTS", "20"))
SEED = int(os.environ.get("BERTH_SEED", time.time_ns() % 10**9))
BOX = "cut"
QUIET_S = 30
# Enough for rows in recording_index: one each MiB.
FLOOD = ("for i in $(seq 1 150); do head -c 20000 /dev/zero | tr '\\0' x;"
         " read -rt 0.02; done; ") + counting(0.05)


def begin_load(srv, n):
    """Terminals, pipes, a lot of output, and sessions that come and go."""
    for name, program in (("a", counting(0.02)), ("b", FLOOD),
                          ("c", counting(0.05))):
        srv.berth_ok("new", "-s", BOX, "-n", name, "--", "bash", "-c", program)
    clients = [Client(srv, f"{BOX}+{name}", opts=["-tt"])
               for name in ("a", "a", "c")]
    clients.append(Client(srv, BOX, counting(0.02)))
    for i in range(3):
        srv.out(f"{BOX}{n}-{i}", "echo short")
    wait_for(lambda: all(c.numbers.last for c in clients), QUIET_S)
    return clients


def copy(srv, rng, to, with_shm):
    """What is on the disk now, file by file, with nobody stopped. Only a
    checkpoint rewrites the database: a copy during one is no moment of it.
    """
    db = srv.state / "berth.db"

    def mark():
        with open(f"{db}-wal", "rb") as f:
            return db.stat().st_mtime_ns, f.read(32)

    for _ in range(100):
        shutil.rmtree(to, ignore_errors=True)
        before = mark()
        shutil.copytree(srv.state, to, symlinks=True,
                        ignore=shutil.ignore_patterns("berth.db*"))
        for end in ("", "-wal") + (("-shm",) if with_shm else ()):
            shutil.copy2(f"{db}{end}", to / f"berth.db{end}")
        if mark() == before:
            return
        time.sleep(rng.random() * 0.05)
    raise Failure("no copy without a checkpoint in 100 tries")


def shorten(path, rng, most, zeros=False):
    """The last bytes did not reach the disk, or only the size did."""
    size = path.stat().st_size
    cut = min(size, rng.randrange(1, most))
    with path.open("r+b") as f:
        f.truncate(size - cut)
        if zeros:
            f.truncate(size)
    return f"{path.name} {'zeroed' if zeros else 'cut'} by {cut} of {size}"


def damage(srv, to, rng):
    """Takes away what may be missing; says what it was."""
    done = []
    if rng.random() < 0.5:
        done.append(shorten(to / "berth.db-wal", rng,
                            rng.choice((100, 5000, 200000))))
    rows = srv.sql("SELECT path FROM recording WHERE state = 'open'")
    for r in rows:
        path = to / pathlib.Path(r["path"]).relative_to(srv.state)
        if path.exists() and rng.random() < 0.5:
            done.append(shorten(path, rng, rng.choice((50, 3000, 3 << 20)),
                                rng.random() < 0.3))
    return done


def cut_power(srv):
    """All at once, in no order; /run is gone afterwards."""
    family = procs.descendants(srv.proc.pid)
    srv.kill()
    wait_for(lambda: not procs.kill(
        procs.strays(str(srv.dir), srv.build, family)) and not procs.strays(
        str(srv.dir), srv.build, family), QUIET_S, "nobody left")
    shutil.rmtree(srv.runtime)


def look(srv, checker, rows_before, wal_cut):
    rows = {r["id"]: r for r in srv.sql("SELECT * FROM session")}
    bad = [f"{sid} is {r['status']}" for sid, r in rows.items()
           if r["status"] in LIVE]
    for sid, was in rows_before.items():
        now = rows.get(sid)
        if now is None:
            bad += [] if wal_cut else [f"{sid} is not in the store"]
        elif was["status"] in LIVE and now["status"] not in ("lost", "failed"):
            bad.append(f"{sid} was {was['status']}, is {now['status']}")
        elif was["status"] not in LIVE and not wal_cut and now != was:
            bad.append(f"{sid} was {was}, is {now}")
    bad += checker.look([])
    if wal_cut:
        # its row was in what is missing: the file stays, and must play
        bad = [b for b in bad if not b.startswith("no row for ")]
    return bad


def check_files(srv):
    bad = []
    for path in srv.state.glob("recordings/*/*"):
        data = path.read_bytes()
        known = srv.sql(f"SELECT 1 FROM recording WHERE path = '{path}'")
        if known and data:
            bad += broken_lines(data, path)
    return bad


def serve(srv):
    """Everything works on what is left, and every name is free."""
    begin = time.monotonic()
    done = srv.ssh(BOX, "echo in; exit 3", timeout=60)
    assert (done.returncode, done.stdout) == (3, b"in\n"), done
    assert time.monotonic() - begin < 5
    [row] = srv.sql("PRAGMA integrity_check")
    assert row == {"integrity_check": "ok"}
    assert srv.sql("PRAGMA foreign_key_check") == []


def one_cut(srv, rng, n, notes):
    begin_load(srv, n)
    time.sleep(rng.random() * 2)
    to = srv.dir / "copy"
    notes.append("with -shm" if rng.random() < 0.5 else "without -shm")
    rows = {r["id"]: r for r in srv.sql("SELECT * FROM session")}
    copy(srv, rng, to, notes[0] == "with -shm")
    notes += damage(srv, to, rng)
    wal_cut = any(x.startswith("berth.db-wal") for x in notes)
    cut_power(srv)
    shutil.rmtree(srv.state)
    to.rename(srv.state)
    srv.start()
    checker = Checker(srv)
    found = []

    def quiet():
        found[:] = look(srv, checker, rows, wal_cut)
        return not found

    try:
        wait_for(quiet, QUIET_S)
    except Failure:
        raise Failure("\n".join(found)) from None
    found += check_files(srv)
    assert not found, "\n".join(found)
    serve(srv)
    for client in srv.clients:
        client.close()
    srv.clients.clear()


@pytest.mark.timeout(3600)
def test_a_power_cut_loses_no_more_than_the_disk_did():
    print(f"BERTH_SEED={SEED}")
    rng = random.Random(SEED)
    srv = Server(build=RELEASE, recording__exec="yes")
    try:
        srv.out(BOX, "true")
        wait_for(lambda: not procs.children(srv.proc.pid))
        srv.base_fds = procs.fd_count(srv.proc.pid)
        for n in range(CUTS):
            notes = []
            try:
                one_cut(srv, rng, n, notes)
            except Exception as e:
                raise Failure(
                    f"BERTH_SEED={SEED}, cut {n}: {', '.join(notes)}\n{e}\n"
                    f"server log:\n{srv.log()[-6000:]}") from e
            print(f"cut {n}: {', '.join(notes)}")
    finally:
        srv.close()
