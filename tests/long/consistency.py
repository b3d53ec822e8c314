"""What must be true of a server whenever it is quiet, whatever was killed
before: the store, /proc, the files of keepers, recordings and clients tell the
same. look() returns sentences about what does not fit; none is the aim.
"""

import fcntl
import json
import os
import re

import procs

LIVE = ("creating", "running")


def holds(path):
    """True if somebody has the flock of the file at path."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def environ_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as f:
            return f.read()
    except OSError:
        return b""


def ptys_of(pid):
    """Numbers of the pseudo terminals whose master a process has open."""
    found = set()
    try:
        for fd in os.listdir(f"/proc/{pid}/fdinfo"):
            if not os.readlink(f"/proc/{pid}/fd/{fd}").endswith("ptmx"):
                continue
            with open(f"/proc/{pid}/fdinfo/{fd}", encoding="ascii") as f:
                index = re.search(r"tty-index:\s*(\d+)", f.read())
            if index:
                found.add(int(index[1]))
    except OSError:
        pass
    return found


def ptys_unexplained():
    """Pseudo terminals of this machine whose masters nobody here has open."""
    held = sum(len(ptys_of(p.pid)) for p in procs.all_procs())
    with open("/proc/sys/kernel/pty/nr", encoding="ascii") as f:
        return int(f.read()) - held


def tcp_pairs():
    """inode of an IPv4 socket -> (own address, peer's address)."""
    def address(word):
        host, port = word.split(":")
        octets = bytes.fromhex(host)[::-1]
        return ".".join(map(str, octets)) + f":{int(port, 16)}"

    pairs = {}
    with open("/proc/net/tcp", encoding="ascii") as f:
        next(f)
        for line in f:
            words = line.split()
            pairs[words[9]] = address(words[1]), address(words[2])
    return pairs


def connection_of(pid, pairs):
    """(own, peer) of the TCP connection that a process has, or None."""
    try:
        for fd in os.listdir(f"/proc/{pid}/fd"):
            inode = re.match(r"socket:\[(\d+)\]",
                             os.readlink(f"/proc/{pid}/fd/{fd}"))
            if inode and inode[1] in pairs:
                return pairs[inode[1]]
    except OSError:
        pass
    return None


class Family:
    """The processes of one server, now."""

    def __init__(self, srv):
        here = str(srv.dir)
        builds = (f"{srv.build}/", f"{here}/")
        self.keepers, self.sshds, self.signallers = {}, [], []
        for p in procs.all_procs():
            if p.state in "ZX" or not p.comm.startswith("berth-s"):
                continue
            if not p.link("exe").startswith(builds):
                continue
            if p.comm == "berth-signaller":
                self.signallers.append(p)
            elif not any(x.startswith(here) for x in p.links()):
                continue
            elif p.comm == "berth-sshd":
                self.sshds.append(p)
            elif p.comm == "berth-session":
                self.add_keeper(p)
        keepers = {p.pid for p in self.keepers.values()}
        self.signallers = [p for p in self.signallers if p.ppid in keepers
                           or any(x.startswith(here) for x in p.links())]

    def add_keeper(self, p):
        try:
            with open(f"/proc/{p.pid}/cmdline", "rb") as f:
                sid = re.search(rb"ses-[0-9a-f]{16}", f.read())
        except OSError:
            return
        if sid:
            self.keepers[sid[0].decode()] = p


class Checker:
    """Remembers which recordings were read to their end before."""

    def __init__(self, srv):
        self.srv = srv
        self.read = set()

    def look(self, clients):
        """clients: the live ssh processes' pids, each with one session."""
        srv = self.srv
        rows = {r["id"]: r for r in srv.sql("SELECT * FROM session")}
        family = Family(srv)
        return (self.sessions(rows, family)
                + self.files(rows)
                + self.connections(clients, family)
                + self.daemon(family)
                + self.ptys(rows, family)
                + self.leftovers(rows)
                + self.recordings(rows))

    def sessions(self, rows, family):
        bad = []
        for sid, r in rows.items():
            if r["status"] == "creating":
                bad.append(f"{sid} is still creating")
            elif r["status"] == "running":
                bad += self.running(r, family)
            elif not r["exited_ms"] or r["exited_ms"] < r["created_ms"]:
                bad.append(f"{sid} ended without a time: {r}")
        live = {s for s, r in rows.items() if r["status"] in LIVE}
        for sid, p in family.keepers.items():
            if sid not in live:
                bad.append(f"a keeper without a running row: {p}")
        homes = {p.pid for p in family.keepers.values()}
        bad += [f"a signaller without a keeper: {p}"
                for p in family.signallers if p.ppid not in homes]
        return bad

    def running(self, r, family):
        bad = []
        if r["id"] not in family.keepers:
            bad.append(f"{r['id']} runs and has no keeper")
        if not holds(self.srv.runtime / "sessions" / f"{r['id']}.lock"):
            bad.append(f"{r['id']} runs and nobody has its lock")
        if not r["pid"] or not procs.is_alive(r["pid"]):
            bad.append(f"{r['id']} runs and its leader {r['pid']} does not")
        if r["exited_ms"] is not None:
            bad.append(f"{r['id']} runs and has ended: {r}")
        return bad

    def files(self, rows):
        home = self.srv.runtime / "sessions"
        wanted = {f"{s}.{end}" for s, r in rows.items()
                  if r["status"] in LIVE for end in ("lock", "sock")}
        found = set(os.listdir(home))
        return ([f"missing: {n}" for n in wanted - found]
                + [f"left behind: {n}" for n in found - wanted])

    def connections(self, clients, family):
        bad = []
        pairs = tcp_pairs()
        here = {}
        for pid in clients:
            pair = connection_of(pid, pairs)
            if pair:
                here[pair[0]] = pid
        rows = self.srv.sql(
            "SELECT a.id, a.remote_addr, s.status FROM attachment a JOIN"
            " session s ON s.id = a.session_id WHERE a.detached_ms IS NULL")
        told = sorted(r["remote_addr"] for r in rows)
        if told != sorted(here):
            bad.append(f"attached are {sorted(here)}, the store has {told}")
        bad += [f"attached to a session that is {r['status']}: {r['id']}"
                for r in rows if r["status"] != "running"]
        served = [connection_of(p.pid, pairs) for p in family.sshds]
        if sorted(s[1] if s else "" for s in served) != sorted(here):
            bad.append(f"clients {sorted(here)}, connections {served}")
        return bad

    def daemon(self, family):
        pid = self.srv.proc.pid
        bad = [f"not reaped: {p}" for p in procs.children(pid)
               if p.state == "Z"]
        for p in family.keepers.values():
            bad += [f"not reaped by its keeper: {z}"
                    for z in procs.children(p.pid) if z.state == "Z"]
        # a link and a pidfd each, at the very most
        most = (self.srv.base_fds + 2 * len(family.keepers)
                + 2 * len(family.sshds) + 4)
        if procs.fd_count(pid) > most:
            bad.append(f"berthd has {procs.fd_count(pid)} descriptors,"
                       f" at most {most} are explained")
        return bad

    def ptys(self, rows, family):
        bad = []
        for sid, p in family.keepers.items():
            kind = rows.get(sid, {}).get("kind")
            n = len(ptys_of(p.pid))
            if kind and n != (kind == "pty"):
                bad.append(f"the keeper of {sid} ({kind}) has {n} PTYs")
        others = [self.srv.proc.pid]
        others += [p.pid for p in family.sshds + family.signallers]
        return bad + [f"{pid} has a PTY" for pid in others if ptys_of(pid)]

    def leftovers(self, rows):
        """Of a lost session nothing may run on."""
        lost = {s.encode() for s, r in rows.items() if r["status"] == "lost"}
        bad = []
        for p in procs.all_procs():
            if p.state in "ZX":
                continue
            mark = re.search(rb"BERTH_SESSION=(ses-[0-9a-f]{16})",
                             environ_of(p.pid))
            if mark and mark[1] in lost:
                bad.append(f"of the lost {mark[1].decode()}: {p}")
        return bad

    def recordings(self, rows):
        bad = []
        known = set()
        for r in self.srv.sql("SELECT * FROM recording"):
            known.add(r["path"])
            live = rows[r["session_id"]]["status"] in LIVE
            if (r["state"] == "open") != live:
                bad.append(f"recording {r['id']} is {r['state']}, its session"
                           f" {rows[r['session_id']]['status']}")
            elif not live and r["id"] not in self.read:
                wrong = self.closed(r)
                if not wrong:
                    self.read.add(r["id"])
                bad += wrong
        home = self.srv.state / "recordings"
        bad += [f"no row for {p}" for p in map(str, home.glob("*/*"))
                if p not in known]
        return bad

    def closed(self, r):
        try:
            with open(r["path"], "rb") as f:
                data = f.read()
        except OSError as e:
            return [f"recording {r['id']}: {e}"]
        if r["state"] not in ("complete", "truncated"):
            return [f"recording {r['id']} is {r['state']}"]
        if len(data) != r["bytes"]:
            return [f"{r['path']}: {len(data)} bytes, the row has"
                    f" {r['bytes']}"]
        if not data and r["state"] == "truncated":
            return self.broken_index(data, r)
        return broken_lines(data, r) + self.broken_index(data, r)

    def broken_index(self, data, r):
        marks = self.srv.sql(
            "SELECT t_ms, \"offset\" FROM recording_index"
            f" WHERE recording_id = {r['id']}")
        bad = []
        for m in marks:
            at = m["offset"]
            if data[at - 1: at + 1] != b"\n[":
                bad.append(f"{r['path']}: index points at {at}:"
                           f" {data[at - 20: at + 20]!r}")
        return bad


def broken_lines(data, what):
    """Sentences about a recording that is not whole lines of JSON."""
    if not data.endswith(b"\n"):
        return [f"{what}: ends with {data[-60:]!r}"]
    last = 0.0
    for n, line in enumerate(data.splitlines()):
        try:
            event = json.loads(line)
        except ValueError:
            return [f"{what}: line {n + 1} is {line[:80]!r}"]
        if n == 0:
            if event["version"] != 2:
                return [f"{what}: header {line!r}"]
        elif event[0] < last:
            return [f"{what}: time goes back at line {n + 1}"]
        else:
            last = event[0]
    return []
