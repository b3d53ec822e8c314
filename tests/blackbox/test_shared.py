"""The main job: everyone who names a session lands on the same live shell,
which outlives its viewers and ends exactly. Numbers are the field cases'.
"""

import hashlib
import os
import re
import signal
import subprocess
import threading
import time

import pytest

import procs
from berth import end, wait_for


def attached(srv, box):
    return sum(r["attached"] for r in srv.sessions(box))


def shell_pid(term):
    term.send("echo PID=$$=\r")
    return int(term.expect(rb"PID=(\d+)=").group(1))


# ---- get or create --------------------------------------------------------


def test_fifty_first_logins_make_one_session(srv, box):
    """Simultaneous first logins must not race to two shells."""
    outputs = [srv.dir / f"first-{i}" for i in range(50)]
    clients = []
    for path in outputs:
        with path.open("wb") as f:
            clients.append(
                srv.spawn(box, None, ["-tt"], stdin=subprocess.PIPE, stdout=f,
                          stderr=subprocess.STDOUT)
            )
    wait_for(lambda: attached(srv, box) == 50, 90, "50 attached viewers")
    clients[17].stdin.write(b"echo PID=$$=\n")
    clients[17].stdin.flush()

    def pids():
        seen = [re.findall(rb"PID=(\d+)=", p.read_bytes()) for p in outputs]
        return seen if all(seen) else None

    seen = wait_for(pids, 60, "all 50 see the shell's answer")
    rows = srv.sql(
        "SELECT s.pid FROM session s JOIN sandbox b ON b.id = s.sandbox_id"
        f" WHERE b.name = '{box}'"
    )
    assert len(rows) == 1
    assert {p for found in seen for p in found} == {b"%d" % rows[0]["pid"]}
    clients[3].stdin.write(b"exit 43\n")
    clients[3].stdin.flush()
    assert [c.wait(60) for c in clients] == [43] * 50


@pytest.mark.ordinary
def test_two_clients_see_the_same_and_both_type(srv, box):
    """One terminal, two people."""
    a, b = srv.term(box).ready(), srv.term(box).ready()
    a.expect(rb"ready_42\r?\n")
    assert shell_pid(a) == int(b.expect(rb"PID=(\d+)=").group(1))
    b.send("echo from_$((1+1))_b\r")
    a.expect(rb"from_2_b\r\n")
    b.expect(rb"from_2_b\r\n")
    assert len(srv.sessions(box)) == 1 and attached(srv, box) == 2
    a.send("exit 21\r")
    assert (a.wait(), b.wait()) == (21, 21)
    assert srv.row(box)["exit_code"] == 21


def test_names_lead_to_sessions_as_the_contract_says(srv, box):
    """`box` and `box+` are default; `box+exec` is private; `+` may follow."""
    one, two = srv.term(box).ready(), srv.term(f"{box}+").ready()
    assert shell_pid(one) == shell_pid(two)
    other = srv.term(f"{box}+a+b").ready()
    assert shell_pid(other) != shell_pid(one)
    private = [srv.term(f"{box}+exec").ready() for _ in range(2)]
    pids = {shell_pid(t) for t in private}
    assert len(pids) == 2 and shell_pid(one) not in pids
    names = {r["name"] for r in srv.sessions(box)}
    assert {"default", "a+b"} <= names and "exec" not in names
    private[0].kill()
    gone = shell_pid_of(private[0])
    wait_for(lambda: not procs.is_alive(gone), 15, "private shell gone")


def shell_pid_of(term):
    return int(re.findall(rb"PID=(\d+)=", term.text)[-1])


def test_environment_of_the_creator_reaches_the_shell(srv, box):
    """TERM, LANG, LC_*, COLORTERM arrive; nothing else does."""
    term = srv.term(
        box, "-o", "SetEnv=COLORTERM=truecolor LANG=C.UTF-8 LC_TIME=C"
        " LD_PRELOAD=/x PATH=/x", env={"TERM": "xterm-256color"},
    )
    term.ready()
    term.send("echo [$TERM][$LANG][$LC_TIME][$COLORTERM][$LD_PRELOAD]\r")
    term.expect(rb"\[xterm-256color\]\[C.UTF-8\]\[C\]\[truecolor\]\[\]\r\n")
    second = srv.term(box, env={"TERM": "vt100"}).ready()
    second.send("echo [$TERM]\r")
    second.expect(rb"\[xterm-256color\]\r\n")


# ---- F1, B7, exact ends ----------------------------------------------------


class Load:
    """A busy processor while a test runs."""

    def __enter__(self):
        self.child = subprocess.Popen(["sh", "-c", "while :; do :; done"])

    def __exit__(self, *_):
        end(self.child)


def test_f1_size_is_known_before_the_first_instruction(srv, box):
    """Never 0 0, never 24x80, also under load."""
    with Load():
        for _ in range(25):
            term = srv.term(box, command="stty size", cols=132, rows=50)
            assert term.wait() == 0
            assert term.text.startswith(b"50 132\r\n"), term.text
            term.close()
    srv.clients.clear()
    for i in range(5):
        with srv.dir.joinpath("null").open("wb"):
            term = srv.term(f"{box}+s{i}", cols=132, rows=50)
            term.send("stty size; exit\r")
            term.expect(rb"50 132\r\n")
            assert term.wait() == 0


def test_zero_size_falls_back_and_never_erases(srv, box):
    """0x0 means unknown: 80x24 at the start, what was known afterwards."""
    done = srv.ssh(box, "stty size", ["-tt"])
    assert done.stdout == b"24 80\r\n"
    term = srv.term(box, cols=101, rows=37).ready()
    other = srv.spawn(box, None, ["-tt"])
    wait_for(lambda: attached(srv, box) == 2)
    term.send("stty size\r")
    term.expect(rb"37 101\r\n")
    end(other)


def test_the_end_is_exact_under_load(srv, box):
    """The code reaches the client after the last byte, every time."""
    with Load():
        for i in range(30):
            for opts in ([], ["-tt"]):
                code = (i * 7 + len(opts)) % 256
                done = srv.ssh(box, f"seq 1 700; exit {code}", opts)
                assert done.returncode == code
                assert done.stdout.split() == [
                    b"%d" % n for n in range(1, 701)
                ]


def test_every_attached_client_gets_the_end(srv, box):
    """Both clients of a shared session get all output, then the code."""
    for i in range(5):
        name = f"e{i}"
        srv.berth_ok(
            "new", "-s", box, "-n", name, "--", "sh", "-c",
            f"read x; seq 1 3000; exit {70 + i}",
        )
        pair = [srv.term(f"{box}+{name}") for _ in range(2)]
        wait_for(lambda: attached(srv, box) == 2, 30, "two viewers")
        pair[0].send("\r")
        for term in pair:
            assert term.wait() == 70 + i
            numbers = re.findall(rb"(?m)^(\d+)\r$", term.text)
            assert numbers == [b"%d" % n for n in range(1, 3001)]
        wait_for(lambda: not srv.sessions(box), 15, "ended")


def test_b12_a_shared_shell_killed_by_a_signal(srv, box):
    """Everyone attached hears of it, and nobody sees a success."""
    pair = [srv.term(box).ready() for _ in range(2)]
    pair[0].send("kill -KILL $$\r")
    assert all(t.wait() in (255, 137) for t in pair)
    row = srv.row(box)
    assert (row["exit_signal"], row["exit_code"]) == ("KILL", None)


def test_an_attach_to_a_dying_session_ends_or_is_fresh(srv, box):
    """Never a hang, never a second answer."""
    for _ in range(8):
        term = srv.term(box).ready()
        term.send("exit 6\r")
        term.expect(rb"exit 6")  # it is typed before what comes late
        late = srv.ssh(box, None, ["-tt"], input=b"\nexit 8\n", timeout=60)
        assert late.returncode in (6, 8)
        assert term.wait() == 6


def test_f9_interactive_false_exit_is_one_end(srv, box):
    """A non-zero end is an end, not a lost link: no second shell."""
    term = srv.term(box).ready()
    term.send("false\rexit\r")
    assert term.wait() == 1
    assert len(srv.sessions(box, True)) == 1


# ---- A10, replay ------------------------------------------------------------


ESCAPES = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"
    rb"|\x1b[ -/]*[0-~]|[\x00-\x08\x0e-\x1f]")


def numbers_without_gap(text):
    """Counts the pieces between resyncs; in each the lines of the history,
    the painted rows and the live lines must go up by exactly 1.
    """
    pieces = re.split(rb"\[berth: [^\]]*skipped\]", text)
    for piece in pieces:
        plain = ESCAPES.sub(b"\n", piece)
        found = [int(n) for n in re.findall(rb"L(\d+)", plain)][:-1]
        assert len(found) > 10 or len(pieces) > 1
        wrong = [(a, b) for a, b in zip(found, found[1:]) if b != a + 1]
        assert not wrong, wrong[:5]
    return len(pieces) - 1


def attach_often(srv, box, times):
    """Attaches of different speed and length; counts announced skips."""
    skips = 0
    for i in range(times):
        term = srv.term(box)
        term.slow = (0, 0, 0.02, 0.1)[i % 4]
        floor = 20000 if term.slow < 0.1 else 3000
        wait_for(lambda t=term, n=floor: len(t.text) > n, 60, "output")
        time.sleep(0.05 * (i % 5))  # attaches of different length
        term.kill()
        term.proc.wait(10)
        skips += numbers_without_gap(term.text)
        term.close()
    srv.clients.clear()
    srv.berth_ok("kill", f"{box}+default", "-KILL")
    return skips


def test_a10_no_gap_and_no_double_at_an_attach(srv, box):
    """Between replay and live output no line is missing, none comes twice,
    not even for a slow reader while the program prints at a steady pace.
    """
    srv.berth_ok(
        "new", "-s", box, "--", "bash", "-c",
        "i=0; while :; do for n in {1..100}; do echo L$i; i=$((i+1)); done;"
        " sleep .01; done",
    )
    wait_for(lambda: srv.sessions(box)[0]["bytes_out"] > 100000, 30, "output")
    assert attach_often(srv, box, 16) == 0


def test_a10_what_a_flood_pushes_out_is_announced(srv, box):
    """At full speed a joiner may fall off the ring: then it is told, and
    apart from that nothing is missing or doubled.
    """
    srv.berth_ok(
        "new", "-s", box, "--", "bash", "-c",
        "i=0; while :; do echo L$i; i=$((i+1)); done",
    )
    attach_often(srv, box, 12)


QUERIES = (
    rb"\033[c \033[>c \033[=c \033[6n \033[5n \033[>q \033]10;?\007 "
    rb"\033]11;?\033\134 \033]4;1;?\007 \033[?2026$p \033P+q544e\033\134 "
    rb"\033[?u \033[14t \033[18t \033]52;c;?\007"
).split()


def test_a1_the_replay_holds_no_queries(srv, box):
    """Old queries in a replay make the next client type its answers."""
    script = b"".join(b"printf '%s'\n" % q for q in QUERIES)
    srv.ssh(box, "cat > q.sh", input=b"echo begin\n" + script + b"echo fin\n")
    srv.berth_ok(
        "new", "-s", box, "--", "sh", "-c", "sh q.sh; cat -v; exit 3"
    )
    first = srv.term(box)
    # live, or painted when it came too late; the echo of answers may follow
    first.expect(rb"fin")
    first.kill()
    for _ in range(2):
        term = srv.term(box)
        term.expect(rb"begin.*fin.*\x1b\[\?2026l")
        raw = term.text
        for query in QUERIES:
            sequence = query.replace(rb"\033", b"\x1b").replace(
                rb"\007", b"\x07").replace(rb"\134", b"\\")
            assert sequence not in raw, query


def test_replay_shows_what_was_there(srv, box):
    """The next login continues the screen of the last."""
    term = srv.term(box).ready()
    term.send("echo mark_$((6*7))\r")
    term.expect(rb"mark_42\r\n")
    term.kill()
    again = srv.term(box)
    again.expect(rb"mark_42\r\n")
    again.ready()


# ---- A16: it outlives its viewers -------------------------------------------


COUNT = (
    "trap 'echo HUP >>h' HUP; : >h; : >t; i=0;"
    " while :; do i=$((i+1)); echo $i >>t; sleep .2; done"
)


def grows(srv, box):
    def lines():
        return int(srv.out(f"{box}", "wc -l <t"))

    before = lines()
    wait_for(lambda: lines() > before, 20, "the program goes on")
    assert srv.out(box, "cat h") == ""


def test_a16_kill_9_of_the_client(srv, box):
    """A dropped client must not hang up the session."""
    term = srv.term(box).ready()
    term.send(COUNT + "\r")
    wait_for(lambda: srv.ssh(box, "test -s t").returncode == 0)
    term.kill()
    wait_for(lambda: attached(srv, box) == 0, 20, "nobody attached")
    grows(srv, box)


def test_a16_kill_9_of_the_connection_process(srv, box):
    """The front half dies; the shell and the other viewer go on."""
    term = srv.term(box).ready()
    other = srv.term(box).ready()
    term.send(COUNT + "\r")
    wait_for(lambda: srv.ssh(box, "test -s t").returncode == 0)

    def connections():
        found = [p for p in procs.descendants(srv.proc.pid)
                 if p.comm == "berth-sshd"]
        return found if len(found) == 2 else None

    # That of the command above may still be leaving.
    doomed = wait_for(connections, 20, "two connections")
    os.kill(doomed[0].pid, signal.SIGKILL)
    wait_for(lambda: attached(srv, box) == 1, 20, "one left")
    wait_for(lambda: [term.proc.poll(), other.proc.poll()].count(None) == 1)
    grows(srv, box)
    again = srv.term(box)
    again.expect(rb"ready_42")  # before that, Ctrl-C would end ssh itself
    again.send("\x03")
    again.ready()


def test_a16_a_half_open_client_leaves_within_bounds(fresh, box):
    """Silence of the peer takes the mark `attached` away; a new client can
    attach at once.
    """
    srv = fresh(server__keepalive="1s", server__keepalive_count="3")
    term = srv.term(box).ready()
    term.kill(signal.SIGSTOP)
    wait_for(lambda: attached(srv, box) == 0, 45, "dropped by keepalive")
    assert srv.json("who") == []
    srv.term(box).ready()


def test_tilde_dot_detaches(srv, box):
    """The escape of ssh leaves the shell running."""
    term = srv.term(box).ready()
    pid = shell_pid(term)
    term.send("\r~.")
    assert term.wait() == 255
    wait_for(lambda: attached(srv, box) == 0)
    assert procs.is_alive(pid)
    assert shell_pid(srv.term(box).ready()) == pid


def test_closing_the_window_detaches(srv, box):
    """A terminal that goes away hangs up ssh, not the session."""
    term = srv.term(box).ready()
    pid = shell_pid(term)
    term.kill(signal.SIGHUP)
    term.wait()
    wait_for(lambda: attached(srv, box) == 0)
    assert shell_pid(srv.term(box).ready()) == pid


# ---- A13, A21, input --------------------------------------------------------


def test_a13_a_stopped_client_freezes_nobody(srv, box):
    """kill -STOP of one client: the other sees everything at speed, a third
    attaches at once, memory stays bounded, the stopped one comes back.
    """
    a, b = srv.term(box).ready(), srv.term(box).ready()
    keeper = procs.get(srv.session(box)["pid"]).ppid
    b.kill(signal.SIGSTOP)
    before = procs.rss_kib(keeper)
    a.send("seq 1 1000000; echo do''ne\r")
    a.expect(rb"\n1000000\r\ndone\r\n", 60)
    start = time.monotonic()
    srv.term(box).expect(rb"done\r\n")
    assert time.monotonic() - start < 10
    assert procs.rss_kib(keeper) - before < 32 * 1024
    b.kill(signal.SIGCONT)
    a.send("echo aft''er\r")
    b.expect(rb"after\r\n", 60)


def test_a21_a_large_paste_arrives_whole(srv, box):
    """1,000,000 bytes at once into a raw terminal that starts to read late."""
    noise = os.urandom(1000000)
    child = srv.spawn(
        box, None, ["-tt", "-e", "none"], stdin=subprocess.PIPE
    )
    child.stdin.write(
        b"stty raw -echo; echo GO''NOW; sleep 3; head -c 1000000 | sha256sum;"
        b" stty sane; exit 4\n"
    )
    child.stdin.flush()
    seen = b""
    while b"GONOW" not in seen:
        chunk = os.read(child.stdout.fileno(), 4096)
        assert chunk, seen
        seen += chunk

    def feed():
        child.stdin.write(noise)
        child.stdin.flush()

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    rest = child.stdout.read()
    assert hashlib.sha256(noise).hexdigest().encode() in rest
    assert child.wait(30) == 4
    feeder.join(10)


def test_a21_two_pastes_are_not_interleaved(srv, box):
    """Bytes of one bracketed paste stay together."""
    n = 100000
    total = 2 * (n + 12)
    terms = [srv.term(box, "-e", "none").ready() for _ in range(2)]
    terms[0].send(
        f"stty raw -echo; echo GO''NOW; head -c {total} >f; stty sane;"
        " echo do''ne\r"
    )
    terms[1].expect(rb"GONOW")

    for term, letter in zip(terms, (b"A", b"B")):
        push(term, b"\x1b[200~" + letter * n + b"\x1b[201~")
    terms[0].expect(rb"done\r\n", 60)
    got = srv.ssh(box, "cat f").stdout
    a, b = (b"\x1b[200~" + x * n + b"\x1b[201~" for x in (b"A", b"B"))
    assert got in (a + b, b + a)


def push(term, data):
    """Types from a thread, until the terminal goes away."""

    def feed():
        try:
            term.send(data)
        except OSError:
            pass

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    return feeder


def test_a21_a_backlog_never_hangs_a_kill(srv, box):
    """1 MB that nobody reads: detach, output and kill still work."""
    term = srv.term(box, "-e", "none").ready()
    other = srv.term(box).ready()
    term.send("stty raw -echo; echo GO''NOW; sleep 600\r")
    term.expect(rb"GONOW")
    push(term, b"x" * 1000000).join(3)
    pid = srv.session(box)["pid"]
    end_of = srv.term(box)
    wait_for(lambda: attached(srv, box) == 3)
    end_of.kill()
    wait_for(lambda: attached(srv, box) == 2, 15, "detached")
    srv.berth_ok("kill", f"{box}+default")
    assert term.wait() != 0 and other.wait() != 0
    wait_for(lambda: not procs.in_session(pid), 15, "killed")


# ---- F3, F6 -----------------------------------------------------------------


def test_f3_job_control(srv, box):
    """Ctrl-C, Ctrl-Z and Ctrl-\\ as on a terminal of one's own."""
    term = srv.term(box).ready()
    term.send("sleep 100; echo x''1\r")
    foreground(srv, box, b"sleep")
    term.send("\x03")
    term.ready()
    term.send("sleep 100\r")
    foreground(srv, box, b"sleep")
    term.send("\x03")
    term.send("echo code_$?_\r")
    term.expect(rb"code_130_")
    term.send("sleep 100\r")
    foreground(srv, box, b"sleep")
    term.send("\x1a")
    term.expect(rb"Stopped")
    term.send("jobs\r")
    term.expect(rb"Stopped +sleep 100")
    term.send("fg\r")
    foreground(srv, box, b"sleep")  # runs again, so it has the terminal
    term.send("\x03")
    term.ready()
    term.send("sleep 100 | cat\r")
    foreground(srv, box, b"cat")
    term.send("\x1c")
    term.ready()
    pid = srv.session(box)["pid"]
    assert [p.comm for p in procs.in_session(pid)] == ["bash"]
    assert b"no job control" not in term.text
    assert b"cannot set terminal process group" not in term.text


def foreground(srv, box, comm):
    """Waits until a program of that name runs in the session's terminal."""
    pid = srv.session(box)["pid"]

    def runs():
        return any(
            p.comm.encode() == comm and p.pid != pid and p.state != "T"
            for p in procs.in_session(pid)
        )

    wait_for(runs, 20, f"{comm} in the foreground")


def test_f3_resize_reaches_the_foreground(srv, box):
    """WINCH goes to the foreground group; both clients may resize."""
    term = srv.term(box).ready()
    term.send(
        "bash -c 'trap \"stty size\" WINCH; echo GO''NOW;"
        " while :; do sleep .1; done'\r"
    )
    term.expect(rb"GONOW")
    term.resize(90, 33)
    term.expect(rb"33 90\r\n")
    other = srv.term(box, cols=70, rows=20)
    other.expect(rb"33 90")  # who merely comes changes nothing
    other.resize(71, 21)
    other.expect(rb"21 71")
    term.expect(rb"21 71")


def test_f6_background_processes_do_not_delay_the_end(srv, box):
    """With a PTY the client returns though others still hold it."""
    start = time.monotonic()
    done = srv.ssh(
        box, "nohup sleep 9999 >/dev/null 2>&1 & (sleep 9998 &); echo $$;"
        " exit 7", ["-tt"],
    )
    assert done.returncode == 7 and time.monotonic() - start < 15
    sid = int(done.stdout.split()[0])
    term = srv.term(box).ready()
    pid = shell_pid(term)
    term.send("(trap '' HUP; sleep 9997) & exit 8\r")
    assert term.wait() == 8
    assert srv.row(box, "default")["exit_code"] == 8
    assert srv.recording(box, "complete")["finished_ms"]
    procs.kill(procs.in_session(sid) + procs.in_session(pid))


# ---- whose shell --------------------------------------------------------------


def test_a_root_berthd_runs_shells_as_the_sandbox_user(srv, box, as_root):
    """Never uid 0, and no way back to it."""
    got = srv.out(box, "id -u; id -un; id -G; pwd; stat -c %a .; echo $HOME")
    uid, user, groups, cwd, mode, home = got.split("\n")[:6]
    assert uid != "0" and user == "berth-box" and "0" not in groups.split()
    assert cwd == home and cwd.startswith(str(srv.boxes)) and mode == "700"
    term = srv.term(box).ready()
    term.send("id -u; grep Groups /proc/self/status\r")
    term.expect(rb"[\r\n]" + uid.encode() + rb"\r\n")
    assert srv.ssh(box, f"ls {srv.state}").returncode != 0


@pytest.mark.ordinary
def test_f4_the_shell_holds_only_its_own_descriptors(srv, box):
    """Inherited descriptors are a way out: 0, 1, 2 and ls's own, no more."""
    fds = srv.out(box, "ls /proc/self/fd").split()
    assert fds == ["0", "1", "2", "3"]
    fds = srv.out(box, "ls /proc/self/fd", opts=["-tt"]).split()
    assert fds == ["0", "1", "2", "3"]
    pid = srv.term(box).ready() and srv.session(box)["pid"]
    held = {int(n) for n in os.listdir(f"/proc/{pid}/fd")}
    assert held - {255} == {0, 1, 2}  # 255: bash's own copy of its terminal
    names = {os.readlink(f"/proc/{pid}/fd/{n}") for n in held}
    assert len(names) == 1 and names.pop().startswith("/dev/pts/")


def test_no_secrets_of_the_server_in_the_environment(srv, box):
    """A clean environment, the same for both kinds."""
    for opts in ([], ["-tt"]):
        env = dict(
            line.split("=", 1)
            for line in srv.out(box, "env", opts=opts).splitlines()
        )
        assert {"HOME", "USER", "SHELL", "PATH"} <= set(env)
        assert not any(k.startswith(("BERTH_SOCK", "NOTIFY", "LD_", "SSH_AUTH"))
                       for k in env)
        assert "COLUMNS" not in env and "LINES" not in env


# ---- A6: the terminal is given back -----------------------------------------


def dirty(srv, box, **kw):
    """A client in whose terminal a program has turned on what it could."""
    term = srv.term(box, **kw).ready()
    term.send("printf '\\033[?1000;1006;2004h\\033[?1049h'; echo dir''ty\r")
    term.expect(rb"dirty")
    return term


def is_given_back(text):
    """After the last time that each mode was set it was reset."""
    for mode in (b"1000", b"1006", b"2004", b"1049"):
        on = [m.start() for m in re.finditer(rb"\x1b\[\?[0-9;]*" + mode +
                                             rb"[0-9;]*h", text)]
        off = [m.start() for m in re.finditer(rb"\x1b\[\?[0-9;]*" + mode +
                                              rb"[0-9;]*l", text)]
        assert on and off and off[-1] > on[-1], mode


@pytest.mark.parametrize("how", ("exit", "kill", "kick", "term"))
def test_a6_every_orderly_end_gives_the_terminal_back(fresh, box, how):
    """The client's own shell must not be left in mouse and paste mode."""
    srv = fresh()
    term = dirty(srv, box)
    if how == "exit":
        term.send("exit 4\r")
    elif how == "kill":
        srv.berth_ok("kill", f"{box}+default", "-KILL")
    elif how == "kick":
        (row,) = srv.json("who")
        srv.berth_ok("kick", str(row["id"]))
    else:
        srv.stop()
    code = term.wait()
    is_given_back(term.text)
    assert code == {"exit": 4, "kill": 255, "kick": 255, "term": 255}[how]


def test_a6_the_detach_key_gives_it_back_and_is_no_failure(fresh, box):
    srv = fresh(session__detach_key="ctrl-]")
    term = dirty(srv, box)
    term.send("\x1d")
    assert term.wait() == 0
    is_given_back(term.text)
    again = srv.term(box).ready()
    again.send("exit 2\r")
    assert again.wait() == 2


def test_a6_what_was_never_on_is_not_turned_off(srv, box):
    """A shell that set nothing leaves no reset behind its last output."""
    term = srv.term(box).ready()
    term.send("printf '\\033[?2004l'; echo la''st; exec true\r")
    assert term.wait() == 0
    tail = term.text[term.text.rindex(b"last"):]
    assert b"\x1b[" not in tail, tail
