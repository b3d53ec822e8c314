"""What idle sessions and connections hold in memory, and what 200 sessions
cost. KiB of smaps_rollup: `pss` shares each page among those who map it,
`dirty` is the part of it that was written to, `private` what nobody else maps.
sshd's two processes of a connection share what they wrote before they parted,
so for them `private` is less than they take. The shell is not counted.
"""

import os
import subprocess
import time

import berth
import procs
import viewers
from logins import Terminal

SETTLE_S = 1.5


def rollup(processes):
    """{kind: KiB} of the processes together."""
    kinds = {"Private_Dirty": "private", "Pss_Dirty": "dirty", "Pss": "pss"}
    found = dict.fromkeys(kinds.values(), 0)
    for p in processes:
        with open(f"/proc/{p.pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                name, _, value = line.partition(":")
                if name in kinds:
                    found[kinds[name]] += int(value.split()[0])
    return found


def named(processes, name):
    return [p for p in processes if os.path.basename(p.link("exe")) == name]


def session(bench, side):
    """An attached terminal session with a shell at its prompt."""
    before = side.cpu_by_process()
    if side.name == "berth":
        sid, user = side.new_session()
        terminal = Terminal(side.ssh_args("-tt", user=user))
    else:
        sid, terminal = None, Terminal(side.ssh_args("-tt"))
    try:
        terminal.read()
        time.sleep(SETTLE_S)
        found = side.new_processes(before)
        result = rollup(found)
        conn = result
        if sid:
            keeper = rollup(named(found, "berth-session"))
            result.update({f"keeper_{k}": v for k, v in keeper.items()})
            conn = rollup(named(found, "berth-sshd"))
        return {**result, "conn_dirty": conn["dirty"],
                "conn_pss": conn["pss"]}
    finally:
        terminal.close()
        if sid:
            side.end_session(sid)


def idle_user(side):
    """Somebody who is not root, so that sshd separates privileges: then it has
    two processes for a connection."""
    if side.name == "berth" or os.geteuid() != 0:
        return side.user
    return "nobody"


def connection(bench, side):
    """`ssh -N`: authenticated, no channel."""
    before = side.cpu_by_process()
    client = subprocess.Popen(
        side.ssh_args("-N", user=idle_user(side)),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        berth.wait_for(lambda: side.new_processes(before),
                       what="a connection")
        time.sleep(SETTLE_S)
        if client.poll() is not None:
            raise berth.Failure(f"ssh -N ended with {client.returncode}")
        return rollup(side.new_processes(before))
    finally:
        berth.end(client)


def many(bench, side):
    """200 detached sessions: the sum over their keepers and berthd."""
    if side.name != "berth":
        return {}
    sessions = []
    try:
        start_s = time.perf_counter()
        for _ in range(bench.sizes.sessions):
            sessions.append(side.new_session("cat")[0])
        create_s = time.perf_counter() - start_s
        time.sleep(SETTLE_S)
        memory = rollup(side.processes())
        before = side.cpu_by_process()
        time.sleep(bench.sizes.idle_s)
        cpu = side.cpu_since(before) / bench.sizes.idle_s * 100
        return {"private": memory["private"] / 1024,
                "pss": memory["pss"] / 1024, "cpu": cpu, "create": create_s}
    finally:
        for sid in sessions:
            side.ask(verb="kill", session=sid, signal="KILL")
        berth.wait_for(
            lambda: not named(side.processes(), "berth-session"),
            what="the end of all sessions")
        side.drop_recordings()


def full(bench, side):
    """What keeps a session that has printed 10,000 lines of colours and that
    nobody looks at; beside it a server of tmux that remembers as many."""
    kept = viewers.filled(bench, "berth" if side.name == "berth" else "tmux")
    try:
        time.sleep(SETTLE_S)
        return rollup([procs.get(kept.pid)])
    finally:
        kept.close()
        side.drop_recordings()


MEASURES = {"session": session, "connection": connection, "many": many,
            "full": full}
