"""A full house for a while: 100 sessions print numbered lines, 200 clients
come and go, and each checks that it misses none. Memory and descriptors are
as many at the end as in the middle, and the store and the recordings have
everything. BERTH_LOAD_S=600 says how long.
"""

import json
import os
import pathlib
import random
import re
import selectors
import statistics
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

import procs  # noqa: E402
from berth import RELEASE, Server, wait_for  # noqa: E402
from consistency import Checker, Family, broken_lines  # noqa: E402
from load import Numbers, counting  # noqa: E402

SECONDS = int(os.environ.get("BERTH_LOAD_S", "600"))
SEED = int(os.environ.get("BERTH_SEED", time.time_ns() % 10**9))
BOXES, NAMES, EACH = 10, 10, 2
PACE_S = 1.0  # between two lines of a session
LATE_S = 60  # how far a client may be behind on a busy machine
SAMPLE_S = 5
GROWTH, SLACK_KIB = 1.05, 1024
SLACK_FDS = 8  # logins under way


class Viewer:
    """One client; its output goes to the audience's one thread."""

    def __init__(self, srv, user):
        self.user = user
        self.numbers = Numbers()
        self.joined = self.heard = time.monotonic()
        self.proc = subprocess.Popen(
            srv.ssh_args(user, "-tt", "-o", "LogLevel=ERROR"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        os.set_blocking(self.proc.stdout.fileno(), False)

    def read(self):
        """False at the end of the output."""
        try:
            data = os.read(self.proc.stdout.fileno(), 65536)
        except BlockingIOError:
            return True
        if data:
            self.heard = time.monotonic()
            self.numbers.feed(data)
        return bool(data)

    def leave(self):
        self.proc.terminate()
        self.proc.wait(30)
        self.proc.stdin.close()


class Audience(threading.Thread):
    """Reads what everybody gets, as fast as it comes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.selector = selectors.DefaultSelector()
        self.lock = threading.Lock()
        self.done = False

    def add(self, viewer):
        with self.lock:
            self.selector.register(
                viewer.proc.stdout, selectors.EVENT_READ, viewer)

    def run(self):
        while not self.done:
            for key, _ in self.selector.select(0.2):
                if not key.data.read():
                    with self.lock:
                        self.selector.unregister(key.fileobj)


class House:
    def __init__(self, srv):
        self.srv = srv
        self.rng = random.Random(SEED)
        self.audience = Audience()
        self.audience.start()
        self.users = [f"box{b}+s{n}" for b in range(BOXES)
                      for n in range(NAMES)]
        self.viewers = []
        self.joined = 0
        self.kinds, self.dirty, self.fds = [], [], []

    def open(self):
        for user in self.users:
            box, name = user.split("+")
            self.srv.berth_ok("new", "-s", box, "-n", name, "--", "bash",
                              "-c", counting(PACE_S))
        for user in self.users * EACH:
            self.join(user)
            if len(self.viewers) % 20 == 0:
                self.wait_heard()
        self.wait_heard()

    def join(self, user):
        viewer = Viewer(self.srv, user)
        self.viewers.append(viewer)
        self.audience.add(viewer)
        self.joined += 1

    def wait_heard(self):
        wait_for(lambda: all(v.numbers.last for v in self.viewers), 120,
                 "a number for everybody")

    def replace_one(self):
        """Somebody who was in leaves, somebody else comes to the session."""
        viewer = self.rng.choice([v for v in self.viewers if v.numbers.last])
        self.viewers.remove(viewer)
        viewer.leave()
        assert not viewer.numbers.wrong, viewer.numbers.wrong
        self.join(viewer.user)

    def check(self):
        now = time.monotonic()
        for v in self.viewers:
            assert not v.numbers.wrong, f"{v.user}: {v.numbers.wrong}"
            assert v.proc.poll() is None, f"{v.user} ended by itself"
            assert now - v.heard < LATE_S, f"{v.user} hears nothing"

    def sample(self):
        """Only with everybody in: what comes and goes is not counted."""
        self.wait_heard()
        family = Family(self.srv)
        kinds = ([self.srv.proc], family.keepers.values(), family.sshds)
        self.kinds.append([sum(private_dirty_kib(p.pid) for p in kind)
                           for kind in kinds])
        self.dirty.append(sum(self.kinds[-1]))
        self.fds.append(procs.fd_count(self.srv.proc.pid))

    def run(self):
        end = time.monotonic() + SECONDS
        next_sample = 0
        while time.monotonic() < end:
            self.replace_one()
            self.check()
            if time.monotonic() >= next_sample:
                self.sample()
                next_sample = time.monotonic() + SAMPLE_S
            time.sleep(self.rng.random())

    def finish(self):
        """Every session is told a code of its own by one of its viewers."""
        codes = {user: n % 100 + 1 for n, user in enumerate(self.users)}
        told = set()
        for v in self.viewers:
            if v.user not in told:
                told.add(v.user)
                v.proc.stdin.write(b"%d\n" % codes[v.user])
                v.proc.stdin.flush()
        for v in self.viewers:
            assert v.proc.wait(120) == codes[v.user], v.user
        wait_for(lambda: not self.audience.selector.get_map(), 60)
        self.audience.done = True
        self.audience.join(10)
        last = {}
        for v in self.viewers:
            assert not v.numbers.wrong, f"{v.user}: {v.numbers.wrong}"
            assert last.setdefault(v.user, v.numbers.last) == v.numbers.last
        return codes, last


def private_dirty_kib(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return int(re.search(r"Private_Dirty:\s*(\d+)", f.read())[1])
    except OSError:
        return 0


def check_flat(house):
    third = len(house.dirty) // 3
    assert third > 0, "too short to say anything: BERTH_LOAD_S"
    middle = statistics.median(house.dirty[third: 2 * third])
    last = statistics.median(house.dirty[-third:])
    print(f"Private_Dirty KiB: first {house.dirty[0]}, middle {middle:.0f},"
          f" last {last:.0f}; descriptors {min(house.fds)} to"
          f" {max(house.fds)}; {house.joined} clients; berthd, keepers,"
          f" connections: {house.kinds[0]} to {house.kinds[-1]}")
    assert last <= middle * GROWTH + SLACK_KIB
    assert (max(house.fds[-third:])
            <= max(house.fds[third: 2 * third]) + SLACK_FDS)


def check_store(srv, house, codes, last):
    wait_for(lambda: not srv.sql(
        "SELECT 1 FROM attachment WHERE detached_ms IS NULL"), 60)
    rows = srv.sql("SELECT s.*, b.name AS box FROM session s JOIN sandbox b ON"
                   " b.id = s.sandbox_id WHERE s.name IS NOT NULL")
    assert len(rows) == len(house.users)
    for r in rows:
        user = f"{r['box']}+{r['name']}"
        assert (r["status"], r["exit_code"]) == ("exited", codes[user]), r
    [count] = srv.sql("SELECT count(*) AS n, sum(resyncs) AS r FROM attachment"
                      " a JOIN session s ON s.id = a.session_id"
                      " WHERE s.name IS NOT NULL")
    assert count == {"n": house.joined, "r": 0}
    for r in srv.sql("SELECT * FROM recording WHERE name IS NOT NULL"):
        check_recording(r, last[f"{r['sandbox']}+{r['name']}"])
    wait_for(lambda: not Checker(srv).look([]), 30, Checker(srv).look([]))


def check_recording(r, last):
    assert (r["state"], r["gaps"]) == ("complete", 0), r
    data = pathlib.Path(r["path"]).read_bytes()
    assert not broken_lines(data, r["path"])
    events = [json.loads(line) for line in data.splitlines()[1:]]
    text = "".join(e[2] for e in events if e[1] == "o")
    found = [int(n) for n in re.findall(r"line (\d+)\r", text)]
    assert found == list(range(1, last + 1)), r


@pytest.mark.timeout(SECONDS + 1200)
def test_a_full_house_misses_no_line_and_memory_is_flat():
    print(f"BERTH_SEED={SEED}, {SECONDS} s")
    srv = Server(build=RELEASE)
    house = House(srv)
    try:
        srv.out("box0", "true")
        wait_for(lambda: not procs.children(srv.proc.pid))
        srv.base_fds = procs.fd_count(srv.proc.pid)
        house.open()
        house.run()
        check_flat(house)
        codes, last = house.finish()
        check_store(srv, house, codes, last)
    finally:
        for viewer in house.viewers:
            viewer.leave()
        srv.close()
