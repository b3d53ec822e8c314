"""Clients that ask for too much, send too much, or leave in the middle: each
hurts itself alone, and nothing of it stays.
"""

import asyncio
import hashlib
import os
import random
import struct
import subprocess
import threading

import asyncssh

import procs
from berth import end, wait_for
from files import Raw
from ports import Target
from test_exec import connect, open_master

MEG = 1 << 20


def ask(talk, seconds=80):
    return asyncio.run(asyncio.wait_for(talk(), seconds))


def test_b2_a_target_that_ends_early_hurts_no_other_channel(srv, box):
    """A forwarded connection whose client still sends when CLOSE comes: what
    berth says of it afterwards, asyncssh would end everything for.
    """
    def talk(conn):
        left = 700_000
        while left > 0:
            left -= len(conn.recv(min(left, 65536)) or b"x" * left)
        conn.sendall(b"enough")

    target = Target(talk)

    async def early(conn):
        reader, writer = await conn.open_connection("127.0.0.1", target.port)
        try:
            for _ in range(200):
                writer.write(bytes(100_000))
            assert await reader.read() in (b"enough", b"")
        except (BrokenPipeError, ConnectionResetError):
            pass
        writer.close()

    async def all_of_it():
        async with await connect(srv, box) as conn:
            for _ in range(5):
                await early(conn)
                assert (await conn.run("echo on")).stdout == "on\n"

    try:
        ask(all_of_it)
    finally:
        target.close()


def test_b2_a_thousand_channels_at_once(srv, box):
    """As many as may be run, the others are refused, and the connection goes
    on.
    """
    async def one(conn, i):
        try:
            done = await conn.run(f"echo {i}; sleep 1")
        except asyncssh.ChannelOpenError:
            return None
        return (done.exit_status, done.stdout) == (0, f"{i}\n")

    async def all_of_them():
        async with await connect(srv, box) as conn:
            found = await asyncio.gather(
                *[one(conn, i) for i in range(1000)])
            assert False not in found and found.count(True) >= 64
            assert (await conn.run("echo on")).stdout == "on\n"

    ask(all_of_them)
    wait_for(lambda: not srv.sessions(box), 30, "all ended")


def test_b2_twenty_channels_that_upload_at_once(srv, box):
    """More than have a wide window: every byte, code and line of stderr."""
    master, opts = open_master(srv, box)
    data = os.urandom(2 * MEG)
    want = hashlib.sha256(data).hexdigest()
    children = [
        srv.spawn(box, f"sha256sum; echo e{i} >&2; exit {i}", opts,
                  stdin=subprocess.PIPE)
        for i in range(20)
    ]

    def feed(child):
        child.stdin.write(data)
        child.stdin.close()

    threads = [threading.Thread(target=feed, args=(c,)) for c in children]
    for t in threads:
        t.start()
    for i, child in enumerate(children):
        out, err = child.stdout.read(), child.stderr.read()
        assert (out.decode()[:64], err, child.wait(30)) == (
            want, b"e%d\n" % i, i)
    for t in threads:
        t.join()
    end(master)


def test_c8_packets_of_noise(srv, box):
    """sftp-server may answer or end; its channel alone does."""
    seed = int(os.environ.get("BERTH_SEED", "5"))
    rnd = random.Random(seed)
    for _ in range(12):
        raw = Raw(srv, box)
        for _ in range(rnd.randrange(1, 6)):
            body = rnd.randbytes(rnd.randrange(2000))
            n = rnd.choice([len(body) + 1, 0, 1, 1 << 31, 262_145])
            try:
                raw.child.stdin.write(
                    struct.pack(">IB", n, rnd.randrange(256)) + body)
                raw.child.stdin.flush()
            except BrokenPipeError:
                break
        try:
            raw.child.stdin.close()
        except BrokenPipeError:
            pass
        raw.child.wait(30)
    assert srv.out(box, "echo on") == "on\n"
    wait_for(lambda: not srv.sessions(box), 30, f"seed {seed}: all ended")


def test_f2_twenty_channels_and_the_line_is_cut(srv, box):
    """No process, session or descriptor of them stays."""
    async def vanish():
        conn = await connect(srv, box)
        for _ in range(20):
            await conn.create_process("cat")
        conn._transport.abort()

    wait_for(lambda: not procs.children(srv.proc.pid), 30, "quiet")
    before = procs.fd_count(srv.proc.pid)
    ask(vanish)
    wait_for(lambda: not srv.sessions(box), 30, "all ended")
    wait_for(lambda: procs.fd_count(srv.proc.pid) <= before, 15,
             "descriptors as before")
