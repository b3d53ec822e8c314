"""Somebody kills processes of berth at random, one after the other, while
people work: after each kill the store, /proc, the files and the clients tell
the same, only what was killed is lost, and the next login works at once.
BERTH_KILLS=200 says how many, BERTH_SEED repeats a run's choices.
"""

import json
import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

sys.path.insert(
    0, str(pathlib.Path(__file__).resolve().parents[1] / "blackbox"))

import procs  # noqa: E402
from berth import RELEASE, ROOT, Failure, Server, wait_for  # noqa: E402
from consistency import (  # noqa: E402
    Checker, Family, connection_of, environ_of, ptys_unexplained, tcp_pairs)
from load import Client, counting  # noqa: E402

KILLS = int(os.environ.get("BERTH_KILLS", "200"))
SEED = int(os.environ.get("BERTH_SEED", time.time_ns() % 10**9))
LOGIN_S = 5  # how long the next login may take
QUIET_S = 30  # how long things may take to settle
BOX = "load"
SHARED = 4
EXECS = 2
BUILDS = {"release": RELEASE, "sanitizers": ROOT / "build" / "asan"}


class Story:
    """What one session may have become, by what was done to it."""

    def __init__(self, sid, clients):
        self.sid, self.clients = sid, clients
        self.ends = set()  # (status, exit_code, exit_signal)
        self.is_mute = False  # nobody is left who could signal it

    def may(self, status, code=None, sig=None):
        self.ends.add((status, code, sig))


class Control(threading.Thread):
    """A program that asks the control socket all the time."""

    def __init__(self, srv):
        super().__init__(daemon=True)
        self.srv, self.answers = srv, 0
        self.wrong = None
        self.done = threading.Event()

    def run(self):
        while not self.done.wait(0.2):
            try:
                with socket.socket(socket.AF_UNIX) as s:
                    s.settimeout(30)
                    s.connect(str(self.srv.socket))
                    self.ask(s)
            except (ConnectionError, FileNotFoundError):
                pass
            except (OSError, ValueError) as e:
                self.wrong = repr(e)

    def ask(self, s):
        with s.makefile("rwb") as f:
            while not self.done.wait(0.1):
                f.write(b'{"verb": "ls"}\n')
                f.flush()
                line = f.readline()
                if not line.endswith(b"\n"):
                    return
                json.loads(line)
                self.answers += 1


class Chaos:
    """The load, what was done to it, and what must hold afterwards."""

    def __init__(self, srv, rng):
        self.srv, self.rng = srv, rng
        self.stories, self.known = {}, {}
        self.shared, self.execs, self.late = {}, [], []
        self.checker = Checker(srv)
        self.control = Control(srv)
        self.done = []  # what was done this round
        self.control.start()

    # ---- the load ---------------------------------------------------------

    def rows(self, where="1"):
        return self.srv.sql(f"SELECT * FROM session WHERE {where}")

    def begin(self, make):
        """Starts the clients of one new session; its story."""
        before = {r["id"] for r in self.rows()}
        clients = make()

        def born():
            return [r for r in self.rows("status = 'running'")
                    if r["id"] not in before]

        [row] = wait_for(born, QUIET_S, "a new session that runs")
        story = Story(row["id"], clients)
        self.stories[story.sid] = story
        return story

    def join(self, name):
        return Client(self.srv, f"{BOX}+{name}", opts=["-tt"])

    def share(self, name):
        self.srv.berth_ok("new", "-s", BOX, "-n", name, "--", "bash", "-c",
                          "(trap '' HUP TERM; exec sleep 7171) & "
                          + counting(0.05))
        return []

    def restore(self):
        """Everybody who is gone comes again."""
        for n in range(SHARED):
            name = f"s{n}"
            story = self.shared.get(name)
            if story is None or story.sid not in self.stories:
                story = self.begin(lambda: self.share(name))
                self.shared[name] = story
            story.clients[:] = [c for c in story.clients if c.is_alive()]
            while len(story.clients) < 2:
                story.clients.append(self.join(name))
        self.execs = [s for s in self.execs if s.sid in self.stories]
        while len(self.execs) < EXECS:
            self.execs.append(self.begin(lambda: [Client(
                self.srv, BOX, counting(0.02))]))
        wait_for(lambda: all(c.numbers.last or not c.is_alive()
                             for c in self.clients()), QUIET_S,
                 "numbers for everybody")

    def clients(self):
        return [c for s in self.stories.values() for c in s.clients]

    # ---- what is done to it -----------------------------------------------

    def strike(self, pid, what):
        self.done.append(f"{what} {pid}")
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            self.done.append("which was gone")

    def kill_berthd(self):
        self.done.append(f"berthd {self.srv.proc.pid}")
        self.srv.kill()
        if self.rng.random() < 0.4:
            self.pick(("sshd", "keeper", "signaller", "shell"))
        time.sleep(self.rng.random() * 0.5)
        self.srv.start()

    def kill_sshd(self):
        family = Family(self.srv)
        if not family.sshds:
            return
        p = self.rng.choice(family.sshds)
        pair = connection_of(p.pid, tcp_pairs())
        for story in self.execs:
            mine = connection_of(story.clients[0].pid, tcp_pairs())
            if pair and mine and mine[0] == pair[1]:
                self.cut_off(story)
        self.strike(p.pid, "sshd")

    def cut_off(self, story):
        """Its only client goes, and what is bound to it with it."""
        for sig in ("HUP", "TERM", "KILL"):
            story.may("killed", None, sig)
        if story.is_mute:
            story.may("lost")

    def kill_keeper(self):
        sid, p = self.rng.choice(sorted(Family(self.srv).keepers.items()))
        if sid in self.stories:
            self.stories[sid].may("lost")
        self.strike(p.pid, f"keeper of {sid}")

    def kill_signaller(self):
        family = Family(self.srv)
        if not family.signallers:
            return
        p = self.rng.choice(family.signallers)
        for sid, keeper in family.keepers.items():
            if keeper.pid == p.ppid and sid in self.stories:
                self.stories[sid].is_mute = True
        self.strike(p.pid, "signaller")

    def kill_shell(self):
        rows = [r for r in self.rows("status = 'running' ORDER BY id")
                if r["id"] in self.stories and procs.is_alive(r["pid"])]
        if not rows:
            return
        row = self.rng.choice(rows)
        self.stories[row["id"]].may("killed", None, "KILL")
        self.strike(row["pid"], f"leader of {row['id']}")

    def end_one(self):
        """A program ends by itself at the same time."""
        story = self.rng.choice(list(self.stories.values()))
        code = self.rng.randrange(1, 100)
        alive = [c for c in story.clients if c.is_alive()]
        if alive:
            self.done.append(f"{story.sid} is told to exit {code}")
            story.may("exited", code)
            self.rng.choice(alive).tell(code)

    def pick(self, kinds):
        getattr(self, f"kill_{self.rng.choice(kinds)}")()

    def login(self):
        """Somebody who comes in the middle of it; may fail, may not hang."""
        self.done.append("a login meanwhile")
        self.late.append(self.srv.spawn(BOX, "echo in; exit 3"))
        time.sleep(self.rng.random() * 0.1)

    def upgrade(self):
        self.done.append("an upgrade meanwhile")
        args = [self.srv.build / "berth", "-S", self.srv.socket, "upgrade"]
        self.late.append(subprocess.Popen(
            args, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL))
        time.sleep(self.rng.random() * 0.1)

    def round(self):
        self.done = []
        self.restore()
        for chance, act in ((0.2, self.upgrade), (0.3, self.login),
                            (0.3, self.end_one)):
            if self.rng.random() < chance:
                act()
        self.pick(("berthd", "sshd", "keeper", "signaller", "shell"))
        self.settle()
        self.try_login()

    # ---- what must hold ---------------------------------------------------

    def settle(self):
        for child in self.late:
            child.wait(QUIET_S)
            for pipe in (child.stdout, child.stderr):
                if pipe:
                    pipe.close()
        self.late = []
        found = []

        def quiet():
            found[:] = self.look()
            return not found

        try:
            wait_for(quiet, QUIET_S)
        except Failure:
            raise Failure("\n".join(found)) from None
        self.forget()

    def look(self):
        bad = self.checker.look([c.pid for c in self.clients()
                                 if c.is_alive()])
        rows = {r["id"]: r for r in self.rows()}
        for story in self.stories.values():
            bad += self.judge(story, rows[story.sid])
        for sid, r in rows.items():
            if sid not in self.known and sid not in self.stories:
                bad += [] if r["exited_ms"] else [f"{sid} is nobody's"]
        if self.control.wrong:
            bad.append(f"control client: {self.control.wrong}")
        if not self.srv.is_running():
            bad.append("berthd is gone")
        return bad

    def judge(self, story, r):
        end = r["status"], r["exit_code"], r["exit_signal"]
        bad = [f"{story.sid}: {c.numbers.wrong}" for c in story.clients
               if c.numbers.wrong and c.told is None]
        if r["status"] == "running":
            # whose end was certain has ended by now, or is about to
            if story.ends:
                bad.append(f"{story.sid} runs on, expected {story.ends}")
        elif end not in story.ends:
            bad.append(f"{story.sid} ended {end}, allowed {story.ends}")
        else:
            bad += self.judge_clients(story, r)
        return bad

    def judge_clients(self, story, r):
        codes = [c.proc.poll() for c in story.clients]
        want = {255, r["exit_code"] if r["status"] == "exited" else 255}
        if None in codes:
            return [f"{story.sid} has ended, its clients have not: {codes}"]
        return ([] if set(codes) <= want else
                [f"{story.sid}: clients ended with {codes}, not {want}"])

    def forget(self):
        """Sessions that have ended are judged once; names are free again."""
        rows = {r["id"]: r for r in self.rows("exited_ms IS NOT NULL")}
        for sid, r in rows.items():
            story = self.stories.pop(sid, None)
            if story and r["status"] != "lost":
                self.end_background(sid)
        self.known.update(rows)

    @staticmethod
    def end_background(sid):
        """What a program left in the background on purpose is its own."""
        for p in procs.all_procs():
            if f"BERTH_SESSION={sid}".encode() in environ_of(p.pid):
                procs.kill([p])

    def try_login(self):
        begin = time.monotonic()
        done = self.srv.ssh(BOX, "echo in; exit 3", timeout=60)
        took = time.monotonic() - begin
        if (done.returncode, done.stdout) != (3, b"in\n"):
            raise Failure(f"the next login: {done}")
        if took > LOGIN_S:
            raise Failure(f"the next login took {took:.1f} s")
        wait_for(lambda: not self.rows("exited_ms IS NULL AND name IS NULL AND"
                                       f" id NOT IN ({self.quoted()})"))
        self.known.update({r["id"]: r for r in self.rows(
            "exited_ms IS NOT NULL AND name IS NULL")})

    def quoted(self):
        return ",".join(f"'{sid}'" for sid in self.stories)

    def end(self):
        """Everybody goes; nothing may stay of any of it."""
        for story in self.stories.values():
            self.srv.berth("kill", story.sid)
        for client in self.clients():
            client.proc.wait(QUIET_S)
        wait_for(lambda: not self.rows("exited_ms IS NULL"), QUIET_S)
        for sid in list(self.stories):
            self.end_background(sid)
        self.stories = {}
        self.control.done.set()
        self.control.join(30)
        self.wait_bare()

    def wait_bare(self):
        """berthd is as it was before anybody came."""
        try:
            wait_for(lambda: not self.remains(), QUIET_S)
        except Failure:
            raise Failure(f"stays behind: {self.remains()}") from None

    def remains(self):
        pid = self.srv.proc.pid
        home = f"/proc/{pid}/fd"
        left = procs.children(pid) + os.listdir(self.srv.runtime / "sessions")
        if procs.fd_count(pid) > self.srv.base_fds:
            left += [os.readlink(f"{home}/{n}") for n in os.listdir(home)]
        return left


def count_shares(n):
    """KILLS in as many parts as there are builds."""
    return KILLS * (n + 1) // len(BUILDS) - KILLS * n // len(BUILDS)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("build", BUILDS)
def test_nothing_is_inconsistent_after_kill_9_of_anything(build):
    seed = SEED + list(BUILDS).index(build)
    print(f"seed {seed}, BERTH_SEED={SEED}")
    ptys = ptys_unexplained()
    srv = Server(start=False, build=BUILDS[build], recording__exec="yes")
    try:
        srv.install()
        srv.start()
        srv.ssh(BOX, "true")
        wait_for(lambda: not procs.children(srv.proc.pid))
        srv.base_fds = procs.fd_count(srv.proc.pid)
        run_rounds(srv, build, seed)
        # others may open and close some at the same time: look again
        wait_for(lambda: ptys_unexplained() <= ptys, 60, "PTYs as before")
    finally:
        srv.close()


def run_rounds(srv, build, seed):
    chaos = Chaos(srv, random.Random(seed))
    for n in range(count_shares(list(BUILDS).index(build))):
        try:
            chaos.round()
            srv.check_log()
        except Exception as e:
            raise Failure(
                f"BERTH_SEED={SEED} ({build}), round {n}: killed"
                f" {', '.join(chaos.done) or 'nobody'}\n{e}\nserver log:\n"
                f"{srv.log()[-6000:]}") from e
        print(f"{build} {n}: {', '.join(chaos.done)}")
    chaos.end()
    print(f"{build}: the control client got {chaos.control.answers} answers")
    assert chaos.control.answers > 0
