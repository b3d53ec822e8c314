"""One keeper alone, spoken to in frames: what it promises to viewers and to
the manager, without ssh in between. CASES numbers are in the names.
"""

import hashlib
import json
import os
import random
import re
import signal
import struct
import threading
import time

import pytest

import keeper_frames as kf
import procs
from keeper_frames import BOUND, FOLLOW, MAY_TYPE, PTY, REPLAY, is_alive

SH = "/bin/sh"


@pytest.fixture
def keeper(tmp_path):
    made = []

    def make(*args, **kw):
        place = tmp_path / str(len(made))
        place.mkdir()
        made.append(kf.Keeper(place, *args, **kw))
        return made[-1]

    yield make
    errors = []
    for k in made:
        try:
            k.close()
        except AssertionError as e:
            errors.append(str(e))
    assert not errors, errors


def sh(command):
    return (SH, "-c", command)


def test_two_viewers_see_the_same_bytes(keeper):
    k = keeper(sh("stty -echo; echo ready; cat"))
    a, b = k.attach(), k.attach()
    a.wait_for("ready")
    for i in range(20):
        (a, b)[i % 2].type(f"line{i}\n")
        for v in (a, b):
            v.wait_for(f"line{i}\r\n")
    assert a.out[kf.OUT] == b.out[kf.OUT]


def test_A10_replay_then_live_has_no_gap_and_no_double(keeper):
    k = keeper(sh("i=0; while :; do echo L$i; i=$((i+1)); done"))
    k.attach().wait_for("L5\r\n")
    for n in range(60):
        v = k.attach(flags=REPLAY | FOLLOW)
        before = len(v.out[kf.OUT])
        v.wait(lambda v=v, n=before: len(v.out[kf.OUT]) > n + 3000 * (n % 7))
        v.wait(lambda v=v: len(v.out[kf.OUT]) > 3000)
        v.close()
        numbers = [int(x) for x in re.findall(rb"L(\d+)\r\n", v.out[kf.OUT])]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert len(numbers) > 100


@pytest.mark.parametrize("flags", (PTY, BOUND, PTY | BOUND, 0))
def test_F9_exit_codes_arrive(keeper, flags):
    for code in (0, 1, 5, 127, 137, 255):
        k = keeper(sh(f"sleep 0.1; exit {code}"), flags=flags)
        v = k.attach()
        assert v.wait_end() == (0, code, "")
        v.close()
        assert k.exited() == (0, code, "")
        k.wait_gone()


@pytest.mark.parametrize("flags", (PTY, BOUND))
def test_B12_death_by_signal_arrives(keeper, flags):
    for name in ("HUP", "INT", "KILL", "TERM", "SEGV", "PIPE"):
        k = keeper(sh(f"ulimit -c 0; sleep 0.1; kill -{name} $$"), flags=flags)
        v = k.attach()
        number = getattr(signal, "SIG" + name)
        assert v.wait_end() == (1, number, "")
        v.close()


@pytest.mark.parametrize("flags", (BOUND, BOUND | PTY))
def test_a_bound_process_faster_than_its_client_loses_nothing(keeper, flags):
    k = keeper(sh("echo out; exit 3"), flags=flags)
    k.started()
    time.sleep(0.3)
    v = k.attach()
    assert v.is_attached
    assert v.wait_end()[:2] == (0, 3)
    assert v.out[kf.OUT].strip() == b"out"


def test_a_program_that_cannot_run_is_a_sentence(keeper):
    k = keeper(("/no/such",))
    assert b"cannot run /no/such: No such file" in k.wait(kf.FAILED)[3]
    k.wait_gone()
    k = keeper((SH,), cwd="/no/where")
    assert b"cannot enter /no/where: No such" in k.wait(kf.FAILED)[3]


def test_late_viewer_is_told_that_it_ended(keeper):
    k = keeper(sh("exit 0"))
    k.auto_bye = False
    k.exited()
    assert not k.attach().is_attached
    k.link.send(kf.BYE)
    k.wait_gone()


def test_A21_a_large_input_with_a_slow_reader_arrives_whole(keeper):
    k = keeper(sh("stty raw -echo; echo ready; sleep 1;"
                  " head -c 1000000 | sha256sum; stty sane; echo done"))
    v = k.attach()
    v.wait_for("ready")
    data = random.Random(1).randbytes(1000000)
    v.type(data)
    v.wait_for("done")
    assert hashlib.sha256(data).hexdigest().encode() in v.out[kf.OUT]


def test_A21_frames_of_two_typists_are_never_torn(keeper):
    k = keeper(sh("stty raw -echo; echo ready; sleep 0.5; head -c 480000"
                  " | tr -d '\\n' | fold -w 6000; echo; echo done"))
    a, b = k.attach(), k.attach()
    a.wait_for("ready")

    def typist(v, c):
        for _ in range(40):
            v.type(c * 6000)

    threads = [threading.Thread(target=typist, args=x)
               for x in ((a, b"a"), (b, b"b"))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(30)
    a.wait_for("done")
    text = a.out[kf.OUT].decode()
    assert len(re.findall(r"a{6000}", text)) == 40
    assert len(re.findall(r"b{6000}", text)) == 40


def test_A21_a_paste_in_pieces_is_not_mixed_and_holds_one_second(keeper):
    k = keeper(sh("stty raw -echo; echo ready; cat"))
    a, b = k.attach(), k.attach()
    a.wait_for("ready")
    a.type(b"\033[200~one")
    a.wait_for(b"\033[200~one")
    b.type(b"BBB")
    time.sleep(0.3)
    a.type(b"two\033[2")
    a.type(b"01~")
    a.wait_for(b"\033[200~onetwo\033[201~BBB")
    a.type(b"\033[200~open")
    a.wait_for(b"\033[200~open")
    began = time.monotonic()
    b.type(b"CCC")
    a.wait_for("openCCC")
    assert 0.8 < time.monotonic() - began < 3


def test_A21_a_full_stdin_delays_neither_output_nor_kill(keeper):
    k = keeper(sh("stty raw -echo; echo ready; trap 'echo term; exit 9' TERM;"
                  " while :; do echo tick; sleep 0.1; done"))
    v = k.attach()
    v.wait_for("ready")
    while True:
        try:
            v.type(b"x" * 10000, deadline=1)
        except AssertionError:
            break
    n = len(v.out[kf.OUT])
    v.wait(lambda: len(v.out[kf.OUT]) > n + 20, 5)
    v.signal(signal.SIGTERM)
    assert v.wait_end(5)[:2] == (0, 9)


def test_B9_bound_pipes_carry_ten_megabytes_both_ways(keeper):
    data = random.Random(2).randbytes(10 << 20)
    k = keeper(("/bin/cat",), flags=BOUND)
    v = k.attach()
    v.type(data)
    v.eof()
    assert v.wait_end() == (0, 0, "")
    assert hashlib.sha256(v.out[kf.OUT]).digest() == hashlib.sha256(data).digest()


def test_B9_eof_is_a_half_close_and_streams_stay_apart(keeper):
    k = keeper(sh("cat; sleep 0.3; echo after; echo err >&2; exit 5"), flags=BOUND)
    v = k.attach()
    v.type("in\n")
    v.eof()
    assert v.wait_end()[:2] == (0, 5)
    assert v.out[kf.OUT] == b"in\nafter\n" and v.out[kf.ERR] == b"err\n"


def test_B9_a_process_that_closed_its_stdin_is_no_obstacle(keeper):
    k = keeper(sh("exec 0<&-; sleep 1; echo x"), flags=BOUND)
    v = k.attach()
    v.type(b"\0" * 3000000)
    assert v.wait_end()[:2] == (0, 0)
    assert v.out[kf.OUT] == b"x\n"


def test_a_lent_pipe_is_read_by_the_client_and_given_back(keeper):
    k = keeper(sh("read x; printf first; read x; printf second; exit 3"),
               flags=BOUND)
    v = k.attach()
    k.started()
    pipe = v.take()
    v.type("\n")
    assert os.read(pipe, 100) == b"first"
    v.taken(5)
    v.give_back()
    v.type("\n")
    assert v.wait_end()[:2] == (0, 3)
    assert v.out[kf.OUT] == b"second"
    v.close()
    gone = k.wait(kf.VIEWER_GONE)[3]
    assert struct.unpack(">QQ", gone[:16]) == (v.attachment, 11)


def test_the_end_of_a_lent_pipe_is_the_end(keeper):
    k = keeper(sh("read x; printf all; exit 4"), flags=BOUND)
    v = k.attach()
    k.started()
    pipe = v.take()
    v.type("\n")
    assert os.read(pipe, 100) == b"all" and os.read(pipe, 100) == b""
    v.wait(lambda: v.exit, what="EXIT")
    assert not v.is_ended and v.exit[:2] == (0, 4)
    v.taken(3)
    v.give_back()
    assert v.wait_end()[:2] == (0, 4) and v.out[kf.OUT] == b""


def test_a_client_that_goes_with_a_lent_pipe_takes_its_command_along(keeper):
    k = keeper(sh("exec yes"), flags=BOUND)
    v = k.attach()
    v.wait_for("y")
    assert os.read(v.take(), 100)
    pid = k.started()
    v.close()
    assert k.exited()[:2] == (1, signal.SIGHUP)
    assert not is_alive(pid)


def test_what_is_recorded_is_never_lent(keeper, tmp_path):
    path, fd = record(tmp_path)
    k = keeper(sh("read x; printf all"), flags=BOUND, recording=fd)
    os.close(fd)
    v = k.attach()
    k.started()
    v.link.send(kf.BORROW, kf.OUT)
    v.type("\n")
    assert v.wait_end()[:2] == (0, 0)
    assert v.pipe is None and v.out[kf.OUT] == b"all"
    assert k.exited()[:2] == (0, 0)
    assert cast_output(path)[2] == "all"


@pytest.mark.parametrize("kind,payload", [
    (kf.BORROWED, b"\0\0\0\1"), (kf.EOF, b""), (kf.BORROW, b"x"),
])
def test_frames_of_a_loan_that_is_not_end_the_link(keeper, kind, payload):
    k = keeper(("/bin/cat",), flags=BOUND)
    v = k.attach()
    v.link.send(kind, kf.OUT, 0, payload)
    v.wait(lambda: v.is_closed, what="the end of the link")
    k.exited()


def test_a_terminal_is_not_lent(keeper):
    k = keeper(("/bin/cat",))
    v = k.attach()
    v.link.send(kf.BORROW, kf.OUT)
    v.type("still here\n")
    v.wait_for("still here\r\nstill here")
    assert v.pipe is None


def test_B16_a_bound_client_that_pauses_loses_nothing(keeper):
    k = keeper(sh("seq 1 400000"), flags=BOUND)
    v = k.attach(credit=0)
    v.grant(1, kf.ERR)
    total = b"".join(b"%d\n" % i for i in range(1, 400001))
    granted = 0
    while granted < len(total):
        v.grant(70001)
        granted += 70001
        want = min(granted, len(total))
        v.wait(lambda want=want: len(v.out[kf.OUT]) >= want)
        assert len(v.out[kf.OUT]) <= granted
    v.wait_end()
    assert v.out[kf.OUT] == total


def test_F7_a_bound_terminal_is_lossless_for_a_pausing_client(keeper):
    k = keeper(sh("seq 1 200000"), flags=BOUND | PTY, buffer=1 << 16)
    v = k.attach(credit=0)
    total = b"".join(b"%d\r\n" % i for i in range(1, 200001))
    granted = 0
    while granted < len(total):
        v.grant(50000)
        granted += 50000
        v.wait(lambda: len(v.out[kf.OUT]) >= min(granted, len(total)))
    v.grant(1)
    assert v.wait_end()[:2] == (0, 0)
    assert v.out[kf.OUT] == total


@pytest.mark.parametrize("flags", (BOUND, BOUND | PTY))
def test_F2_E14_a_vanished_client_ends_even_the_stubborn(keeper, flags):
    k = keeper(sh("trap '' HUP TERM; sleep 1000 & echo $! $$; sleep 1000"),
               flags=flags, grace=500)
    v = k.attach()
    v.wait(lambda: b"\n" in v.out[kf.OUT])
    pids = [int(x) for x in v.out[kf.OUT].split()[:2]]
    v.close()
    began = time.monotonic()
    sig, value, note = k.exited(10)
    assert (sig, value) == (1, signal.SIGKILL) and "client" in note
    assert 0.4 < time.monotonic() - began < 4
    kf.wait_until(lambda: not any(is_alive(p) for p in pids))
    k.wait_gone()


def test_A13_a_stopped_viewer_freezes_nobody(keeper):
    k = keeper(sh("stty -echo; read x; seq 1 300000; echo done; read x"))
    slow, fast = k.attach(), k.attach()
    slow.reading.clear()
    fast.type("\n")
    began = time.monotonic()
    fast.wait_for("done\r\n", 20)
    assert time.monotonic() - began < 15
    third = k.attach()
    third.wait_for("done\r\n", 2)
    numbers = re.findall(rb"(\d+)\r\n", fast.out[kf.OUT])
    assert len(numbers) == 300000
    slow.reading.set()
    slow.wait_for("done\r\n", 10)
    slow.wait_for("bytes skipped]", 1)
    fast.type("\n")
    assert slow.wait_end()[:2] == (0, 0)


def test_A13_one_stuck_viewer_alone_stops_counting_after_five_seconds(keeper):
    k = keeper(sh("stty -echo; read x; seq 1 1000000; exit 4"))
    v = k.attach(credit=1000)
    v.credit = 0
    v.type("\n")
    began = time.monotonic()
    k.auto_bye = True
    assert k.exited(25)[:2] == (0, 4)
    assert time.monotonic() - began > 4


def test_F6_holders_of_the_terminal_do_not_delay_the_exit(keeper):
    k = keeper(sh("sleep 99 & (sleep 98 &); yes & echo last; exit 7"))
    v = k.attach()
    began = time.monotonic()
    assert v.wait_end(10)[:2] == (0, 7)
    assert time.monotonic() - began < 5
    assert b"last\r\n" in v.out[kf.OUT]


def test_B8_bound_pipes_end_when_the_last_holder_is_gone(keeper):
    k = keeper(sh("(sleep 1; echo late) & exit 7"), flags=BOUND)
    v = k.attach()
    v.wait(lambda: v.exit is not None, 0.9)
    assert not v.is_ended
    assert v.wait_end()[:2] == (0, 7)
    assert v.out[kf.OUT] == b"late\n"


def test_F1_the_size_is_there_before_the_first_instruction(keeper):
    for _ in range(5):
        k = keeper(("/bin/stty", "size"), flags=PTY | BOUND, cols=132, rows=50)
        v = k.attach()
        v.wait_end()
        assert v.out[kf.OUT] == b"50 132\r\n"


def test_B14_sizes_are_clamped_and_zero_erases_nothing(keeper):
    k = keeper(sh("stty -echo; while read x; do stty size; done"))
    v = k.attach(cols=100, rows=30)
    steps = (((0, 0), "30 100"), ((120, 0), "30 120"), ((1, 1), "1 1"),
             ((70000, 4000000000), "65535 65535"), ((90, 33), "33 90"))
    for size, want in steps:
        v.resize(*size)
        v.type("\n")
        v.wait_for(want + "\r\n")


@pytest.mark.parametrize("policy,want", (
    (kf.LATEST, "40 120"), (kf.SMALLEST, "24 80"), (kf.LARGEST, "40 120"),
    (kf.FIRST, "40 120"), (kf.FIXED, "10 20")))
def test_A11_the_size_follows_the_policy(keeper, policy, want):
    k = keeper(sh("stty -echo; while read x; do stty size; done"),
               policy=policy, cols=20, rows=10)
    a = k.attach(cols=120, rows=40)
    b = k.attach(cols=80, rows=24)
    k.attach(flags=FOLLOW, cols=2, rows=2).resize(3, 3)
    assert k.ask(kf.INPUT, payload=b"\n")
    a.wait_for(want)
    b.close()
    k.wait(kf.VIEWER_GONE)
    k.ask(kf.INPUT, payload=b"\n")
    a.wait_for("10 20" if policy == kf.FIXED else "40 120")


def test_A11_latest_is_who_typed_last_and_does_not_flap(keeper):
    """Who types takes the size over, unless its owner has just typed."""
    k = keeper(sh("stty -echo; while read x; do stty size; done"),
               policy=kf.LATEST, cols=20, rows=10)
    a = k.attach(cols=120, rows=40)
    b = k.attach(cols=80, rows=24)
    b.type("\n")
    b.wait_for("24 80\r\n")
    a.type("\n")
    b.wait(lambda: b.out[kf.OUT].count(b"24 80\r\n") == 2)
    time.sleep(1.1)  # b is silent for a second
    a.type("\n")
    a.wait_for("40 120\r\n")


def test_A12_a_viewer_without_the_role_changes_nothing(keeper):
    k = keeper(sh("stty -echo; echo ready; while read x; do echo got $x;"
                  " stty size; done"), flags=PTY)
    v = k.attach(flags=REPLAY | FOLLOW, cols=2, rows=2)
    v.wait_for("ready")
    v.type("id\r\x03" * 200000)
    v.signal(signal.SIGKILL)
    v.resize(3, 3)
    v.brk()
    v.eof()
    k.ask(kf.INPUT, payload=b"fine\n")
    v.wait_for("got fine\r\n24 80\r\n")
    assert v.out[kf.OUT].count(b"got") == 1


def test_F3_signals_and_break_reach_the_foreground_group(keeper):
    k = keeper(("/bin/bash", "--norc", "-i"), env=("PS1=$ ",))
    v = k.attach()
    v.type("sleep 100\n")
    time.sleep(0.5)
    v.signal(signal.SIGINT)
    v.type("echo code=$?\n")
    v.wait_for("code=130\r\n")
    v.type("stty brkint; sleep 100\n")
    time.sleep(0.5)
    v.brk()
    v.type("echo again=$?\n")
    v.wait_for("again=130\r\n")
    assert b"job control" not in v.out[kf.OUT]


def test_B9_a_bound_terminal_lives_on_after_eof(keeper):
    k = keeper(("/bin/sh",), flags=PTY | BOUND)
    v = k.attach()
    v.type("exit 9\n")
    v.eof()
    assert v.wait_end()[:2] == (0, 9)


def test_stop_ends_all_descendants_and_says_why(keeper):
    k = keeper(sh("trap '' HUP TERM; setsid sleep 500 & echo p $!;"
                  " (trap '' HUP TERM; sleep 501) & echo p $!; wait; sleep 9"))
    v = k.attach()
    v.wait(lambda: v.out[kf.OUT].count(b"p ") == 2)
    v.wait(lambda: v.out[kf.OUT].count(b"\n") == 2)
    pids = [int(x) for x in re.findall(rb"p (\d+)", v.out[kf.OUT])]
    k.stop(300)
    sig, value, note = v.wait_end()
    assert (sig, value) == (1, signal.SIGKILL) and "stopped" in note
    kf.wait_until(lambda: not any(is_alive(p) for p in pids))
    k.wait_gone()


def test_A16_a_named_session_outlives_its_viewers_and_its_manager(keeper):
    k = keeper(sh("trap 'echo HUP' HUP; stty -echo; echo one;"
                  " while read x; do echo got $x; done"))
    v = k.attach()
    v.wait_for("one")
    v.close()
    k.wait(kf.VIEWER_GONE)
    k.drop_manager()
    k.adopt()
    hello = k.wait(kf.HELLO)[3]
    assert b"ses-0123456789abcdef" in hello
    v = k.attach()
    v.type("two\n")
    v.wait_for("got two\r\n")
    assert b"HUP" not in v.out[kf.OUT]


def test_an_end_without_a_manager_stands_in_the_lock_file(keeper):
    k = keeper(sh("read x; exit 6"))
    pid = k.started()
    # written right behind STARTED
    kf.wait_until(lambda: pid.to_bytes(4, "big") in k.state_file())
    before = k.state_file()
    assert b"ses-0123456789abcdef" in before
    v = k.attach()
    k.drop_manager()
    v.type("\n")
    assert v.wait_end()[:2] == (0, 6)
    v.close()
    k.wait_gone()
    after = k.state_file()
    assert len(after) > len(before)
    # is_signal, core_dumped, value, note of struct wire_exited
    assert bytes([0, 0, 0, 0, 0, 6, 0, 0, 0, 0]) in after


def test_an_end_with_a_manager_stands_there_too(keeper):
    """It may be killed before the end is on its disk."""
    k = keeper(sh("exit 9"))
    k.exited()
    k.wait_gone()
    assert bytes([0, 0, 0, 0, 0, 9, 0, 0, 0, 0]) in k.state_file()


def test_a_manager_of_no_higher_generation_is_refused(keeper):
    k = keeper(sh("cat"))
    k.started()
    assert not k.adopt(generation=1)
    assert k.ask(kf.SET_SIZE, 0, bytes([0, 0, 0, 90, 0, 0, 0, 30]))
    k.drop_manager()
    assert not k.adopt(generation=1)
    assert k.adopt(generation=7)
    assert not k.adopt(generation=7)
    assert k.ask(kf.SET_SIZE, 0, bytes([0, 0, 0, 91, 0, 0, 0, 30]))


def test_labels_that_fill_no_frame_are_left_out(keeper):
    """530 viewers with the longest label: the next manager hears of all."""
    k = keeper()
    k.started()
    for _ in range(530):
        assert k.attach(label="x" * 2048).is_attached
    k.drop_manager()
    assert k.adopt()
    payload = k.wait(kf.VIEWERS)[3]
    assert int.from_bytes(payload[:4], "big") == 530
    labels, at = [], 4
    while at < len(payload):
        n = int.from_bytes(payload[at + 8:at + 12], "big")
        labels.append(n)
        at += 12 + n
    assert len(labels) == 530 and labels[0] == 2048 and labels[-1] == 0


def test_a_later_manager_takes_over_from_one_that_is_still_there(keeper):
    k = keeper(sh("cat"))
    k.started()
    old = k.link
    assert k.adopt(generation=2)
    old.sock.settimeout(10)
    k.wait(kf.VIEWERS)
    v = k.attach()
    assert v.is_attached
    v.type("x\n")
    v.wait_for("x\r\n")
    old.sock.close()


@pytest.mark.parametrize("first", [
    (kf.STOP, b"\0\0\0\0"),
    (kf.TAKE, b"\0\0\0\2"),
    (kf.TAKE, b"\0\0\0\0" + b"\xff" * 8),
    (kf.TAKE, b"\0\0\0\x63" + b"\xff" * 8),
    (kf.HELLO, b""),
], ids=["stop", "short", "version_0", "version_99", "hello"])
def test_who_does_not_begin_with_take_is_no_manager(keeper, first):
    k = keeper(sh("cat"))
    pid = k.started()
    link = k.connect()
    assert link.recv()[0] == kf.HELLO
    link.send(first[0], 0, 0, first[1])
    with pytest.raises((EOFError, ConnectionError)):
        while True:
            assert link.recv()[0] == kf.ERROR
    link.sock.close()
    assert is_alive(pid)
    assert k.ask(kf.SET_SIZE, 0, bytes([0, 0, 0, 90, 0, 0, 0, 30]))


def test_a_next_manager_hears_who_is_there_and_who_left(keeper):
    k = keeper(sh("cat"))
    k.started()
    a, b = k.attach(label="first"), k.attach(label="second")
    a.type("x\n")
    a.wait_for("x\r\n")
    k.drop_manager()
    a.close()
    b.type("y\n")
    b.wait_for("y\r\n")
    assert k.adopt()
    gone = k.wait(kf.VIEWER_GONE)[3]
    assert int.from_bytes(gone[:8], "big") == a.attachment
    assert int.from_bytes(gone[16:24], "big") == 2
    assert abs(int.from_bytes(gone[28:36], "big") / 1000 - time.time()) < 60
    there = k.wait(kf.VIEWERS)[3]
    assert int.from_bytes(there[:4], "big") == 1
    assert int.from_bytes(there[4:12], "big") == b.attachment
    assert there[16:] == b"second"


@pytest.mark.parametrize("version,most", [(1, 32 << 10), (2, 64 << 10)])
def test_an_older_viewer_gets_frames_that_it_takes(keeper, version, most):
    """Bound pipes and terminals alike; a stream long enough to fill frames."""
    k = keeper(sh("head -c 3000000 /dev/zero"), flags=kf.BOUND)
    v = k.attach(version=version)
    v.wait_end()
    assert len(v.out[kf.OUT]) == 3000000 and v.largest <= most


def test_a_notice_is_the_first_thing_that_its_viewer_sees(keeper):
    """One at the beginning is a line of the terminal, for all to see; a later
    one is its viewer's own.
    """
    k = keeper(sh("stty -echo; read x; echo begun; cat"))
    v = k.attach(notice="this is new")
    v.wait_for("[berth: this is new]\r\n")
    v.type("\n")
    v.wait_for("begun")
    assert v.out[kf.OUT].startswith(b"[berth: this is new]\r\n")
    late = k.attach(notice="with others")
    late.wait_for("begun")
    assert late.out[kf.OUT].startswith(b"[berth: with others]\r\n")
    other = k.attach()
    other.wait_for("begun")
    assert b"with others" not in other.out[kf.OUT]
    assert other.out[kf.OUT].count(b"this is new") == 1



def test_drop_detaches_one_viewer_with_a_reason(keeper):
    k = keeper(sh("cat"))
    a, b = k.attach(), k.attach()
    why = b"kicked"
    k.link.send(kf.DROP, 0, 0, a.attachment.to_bytes(8, "big")
                + len(why).to_bytes(4, "big") + why)
    a.wait(lambda: a.is_closed, 5)
    assert a.detached == "kicked"
    b.type("x\n")
    b.wait_for("x\r\n")


def test_a_viewer_that_does_not_follow_gets_the_replay_and_the_end(keeper):
    k = keeper(sh("seq 1 100; sleep 100"))
    v = k.attach()
    v.wait_for("100\r\n")
    v = k.attach(flags=REPLAY)
    v.wait_end(5)
    assert v.exit is None and v.out[kf.OUT].startswith(b"1\r\n2\r\n")
    v = k.attach(flags=kf.RAW_TAIL, tail=3)
    v.wait_end(5)
    assert v.out[kf.OUT].split() == [b"98", b"99", b"100"]


def test_lingering_pipes_take_input_and_eof_from_the_manager(keeper):
    k = keeper(sh("cat; echo err >&2; echo end"), flags=0)
    v = k.attach()
    assert k.ask(kf.INPUT, payload=b"hello\n")
    v.wait_for("hello\n")
    assert k.ask(kf.INPUT_EOF)
    assert v.wait_end()[:2] == (0, 0)
    assert b"err\n" in v.out[kf.OUT] and b"end\n" in v.out[kf.OUT]


def test_E14_orphans_are_reaped_and_the_child_has_three_descriptors(keeper):
    k = keeper(sh("for i in 1 2 3 4 5; do (sleep 0.1 &); done; sleep 0.5;"
                  " ls -l /proc/self/fd; cat /proc/self/stat; echo done; cat"))
    v = k.attach()
    v.wait_for("done\r\n")
    text = v.out[kf.OUT].decode()
    fds = [int(x) for x in re.findall(r" (\d+) -> ", text)]
    assert sorted(fds)[:3] == [0, 1, 2] and len(fds) == 4, text
    # as root it has a process that signals for it, besides the leader
    children = [p for p in procs.children(k.proc.pid)
                if p.comm != "berth-signaller"]
    assert len(children) == 1


def test_an_ordinary_uid_owns_its_terminal_and_its_pipes(keeper):
    if os.geteuid() != 0:
        pytest.skip("explained: needs two users, so it runs as root only")
    who = dict(uid=65534, gid=65534, user="nobody")
    k = keeper(sh("id -u; id -g; echo again >$(tty); umask"),
               flags=PTY | kf.SETUID, **who)
    v = k.attach()
    v.wait_end()
    assert v.out[kf.OUT].split() == [b"65534", b"65534", b"again", b"0022"]
    k = keeper(sh("id -u >/dev/stdout; echo e >/dev/stderr"),
               flags=BOUND | kf.SETUID, **who)
    v = k.attach()
    v.wait_end()
    assert v.out[kf.OUT] == b"65534\n" and v.out[kf.ERR] == b"e\n"


def test_garbage_ends_one_viewer_only(keeper):
    k = keeper(sh("cat"))
    a, b = k.attach(), k.attach()
    a.link.sock.sendall(b"\xff" * 64)
    a.wait(lambda: a.is_closed, 5)
    b.type("x\n")
    b.wait_for("x\r\n")


def test_signals_to_the_keeper_do_not_end_it(keeper):
    k = keeper(sh("cat"))
    v = k.attach()
    for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        k.proc.send_signal(s)
    v.type("x\n")
    v.wait_for("x\r\n")


def record(tmp_path):
    path = tmp_path / "out.cast"
    return path, os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)


def cast_output(path):
    lines = path.read_text().splitlines()
    header, *events = [json.loads(x) for x in lines]
    times = [e[0] for e in events]
    assert header["version"] == 2 and times == sorted(times)
    return header, events, "".join(e[2] for e in events if e[1] == "o")


@pytest.mark.parametrize("flags", (PTY, BOUND, 0))
def test_the_recording_is_whole_when_the_end_is_reported(keeper, tmp_path, flags):
    path, fd = record(tmp_path)
    k = keeper(sh("read x; seq 1 60000; exit 2"), flags=flags, recording=fd)
    os.close(fd)
    v = k.attach()
    v.type("\n")
    assert v.wait_end()[:2] == (0, 2)
    assert k.exited()[:2] == (0, 2)
    assert k.wait(kf.EXITED)[3][-1] == 1
    header, _, text = cast_output(path)
    assert header["env"] == {"SHELL": "/bin/sh", "TERM": "xterm"}
    assert text.replace("\r", "").strip() == "\n".join(
        str(i) for i in range(1, 60001))
    assert k.wait(kf.INDEX)
    k.wait_gone()


def test_a_resize_is_recorded_before_what_is_printed_at_that_size(keeper, tmp_path):
    path, fd = record(tmp_path)
    k = keeper(sh("stty -echo; echo ready; while read x; do stty size; done"),
               recording=fd)
    os.close(fd)
    v = k.attach(cols=80, rows=24)
    v.wait_for("ready")
    for n in range(30, 40):
        v.resize(n, n)
        v.type("\n")
        v.wait_for(f"{n} {n}\r\n")
    assert k.ask(kf.FLUSH)
    _, events, _ = cast_output(path)
    at = "80x24"
    for _, kind, text in events:
        if kind == "r":
            at = text
        for n in re.findall(r"(\d+) \d+\r\n", text if kind == "o" else ""):
            assert at == f"{n}x{n}"
    assert at == "39x39"


def viewer_stats(payload):
    """{attachment: (cols, rows, resyncs)}"""
    (n,) = struct.unpack(">I", payload[:4])
    assert len(payload) == 4 + 20 * n
    rows = struct.iter_unpack(">QIII", payload[4:])
    return {row[0]: row[1:] for row in rows}


def test_the_manager_hears_what_viewers_are_like(keeper):
    """With the figures when something changed, and whenever it asks."""
    k = keeper(sh("stty -echo; cat"))
    k.started()
    a = k.attach(cols=90, rows=30)
    b = k.attach(flags=FOLLOW, cols=70, rows=20)
    a.type("x\n")
    a.wait_for("x\r\n")
    want = {a.attachment: (90, 30, 0), b.attachment: (70, 20, 0)}
    assert viewer_stats(k.wait(kf.VIEWER_STATS)[3]) == want
    k.frames.clear()
    k.link.send(kf.WHO)
    assert viewer_stats(k.wait(kf.VIEWER_STATS)[3]) == want
    k.frames.clear()
    a.resize(91, 31)
    want[a.attachment] = (91, 31, 0)
    assert viewer_stats(k.wait(kf.VIEWER_STATS)[3]) == want
    b.close()
    k.wait(kf.VIEWER_GONE)
    k.drop_manager()
    assert k.adopt()
    del want[b.attachment]
    assert viewer_stats(k.wait(kf.VIEWER_STATS)[3]) == want


def test_a_screen_is_written_into_the_file_of_who_asks(keeper):
    """And refused in words where there is none, or no file to write to."""
    k = keeper(sh("echo shown; exec cat"))
    v = k.attach()
    v.wait_for("shown")
    fd = os.memfd_create("screen")
    k.link.send(kf.SCREEN, 0, 77, b"", fd)
    with k.cond:
        assert k.cond.wait_for(
            lambda: any(f[2] == 77 for f in k.frames), 30)
    answer = next(f for f in k.frames if f[2] == 77)
    if answer[0] == kf.TEXT:
        assert struct.unpack(">II", answer[3]) == (80, 24)
        assert os.pread(fd, 100, 0) == b"shown\n"
    else:
        assert answer[:2] == (kf.ERROR, 1) and b"no screen" in answer[3]
    pipes = keeper(sh("cat"), flags=0)
    pipes.started()
    pipes.link.send(kf.SCREEN, 0, 78, b"", fd)
    assert pipes.wait(kf.ERROR, tag=78)[1] == 4
    os.close(fd)
    for arg, payload in ((0, b""), (4, b"")):
        k.link.send(kf.SCREEN, arg, 79, payload)
        with k.cond:
            assert k.cond.wait_for(lambda: k.is_gone, 30)
        assert k.adopt(generation=5 + arg)
