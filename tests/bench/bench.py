"""`make bench`: berth beside OpenSSH's sshd, the same clients, cipher and
machine, in interleaved rounds. Prints a table and writes build/bench.json.

Exit status: 0 when everything could be measured, however the numbers look.
"""

import argparse
import collections
import dataclasses
import fnmatch
import pathlib
import random
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import report  # noqa: E402 - its folder had to be named first
from report import Row  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULT = ROOT / "build" / "bench.json"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """How much of everything one round does."""

    stream_bytes: int = 1 << 30
    pty_bytes: int = 100 << 20
    yes_bytes: int = 20 << 20  # a terminal takes short lines slowly
    logins: int = 10
    keys: int = 300
    screen_mb: int = 32
    sessions: int = 200
    idle_s: float = 10.0
    files: int = 10_000
    tree_bytes: int = 200_000_000
    far_bytes: int = 128 << 20
    # what a program prints to so many viewers
    viewer_bytes: dict = dataclasses.field(default_factory=lambda: {
        1: 48 << 20, 8: 16 << 20, 50: 4 << 20})


QUICK = Sizes(stream_bytes=64 << 20, pty_bytes=8 << 20, yes_bytes=2 << 20,
              screen_mb=4, logins=3, keys=60, sessions=20, idle_s=2.0, files=500,
              tree_bytes=10_000_000, far_bytes=16 << 20,
              viewer_bytes={1: 8 << 20, 8: 4 << 20, 50: 1 << 20})


def rate(measure, name, aim):
    return [
        Row(measure, "rate", name, "MB/s", "higher", aim),
        Row(measure, "cpu", f"{name}, server CPU", "s/GB", "lower"),
    ]


def engine(stream, name, aim):
    """The terminal engine beside libtsm, in two sizes."""
    return [
        Row("screen", f"{stream}_{size}", f"engine and libtsm, {name}, {size}",
            "MB/s", "higher", aim)
        for size in ("80x24", "200x50")
    ]


def watched(n, aims):
    """Log lines to N clients; in the other column is who is named."""
    measure, name = f"viewers_{n}", f"{n} viewer{'s' if n > 1 else ''}"
    return [
        *(Row(measure, other, f"{name}; {other}", "MB/s", "higher",
              aims.get(other))
          for other in ("sshd", "tmux", "dtach", "abduco")
          if n == 1 or other != "sshd"),
        Row(measure, "seen", f"{name}, until all have it; tmux", "MB/s",
            "higher"),
        Row(measure, "lost", f"{name}, not shown; dtach", "%", "lower", 0,
            aim_is_ratio=False),
        Row(measure, "resyncs", f"{name}, left behind", "times", "lower", 0,
            aim_is_ratio=False),
    ]


ROWS = [
    *rate("down_aes", "exec down, aes128-gcm", 1.0),
    *rate("down_chacha", "exec down, chacha20", 1.0),
    *rate("up_aes", "exec up, aes128-gcm", 1.0),
    *rate("up_chacha", "exec up, chacha20", 1.0),
    *rate("shared_log", "shared terminal, log lines, recorded", 0.9),
    *rate("shared_yes", "shared terminal, yes, recorded", 0.9),
    *rate("plain_log", "shared terminal, log lines", None),
    *rate("plain_yes", "shared terminal, yes", None),
    *rate("pty_log", "ssh -t command, log lines, recorded", 0.9),
    *rate("pty_yes", "ssh -t command, yes, recorded", 0.9),
    *watched(1, {"sshd": 0.9}),
    *watched(8, {"tmux": 2}),
    *watched(50, {}),
    *(Row("stopped", other, f"1 viewer and a stopped one; {other}", "MB/s",
          "higher") for other in ("tmux", "dtach", "abduco")),
    Row("stopped", "share", "the same, of 1 viewer alone; tmux", "x",
        "higher", 0.95, aim_is_ratio=False),
    *rate("sftp_put", "sftp put of 1 GB", 1.0),
    *rate("sftp_get", "sftp get of 1 GB", 1.0),
    Row("scp_small", "up", "scp of 10,000 files there", "s", "lower", 1.0),
    Row("scp_small", "down", "scp of 10,000 files back", "s", "lower", 1.0),
    Row("rsync", "first", "rsync of 200 MB", "s", "lower", 1.0),
    Row("rsync", "again", "rsync of 200 MB, unchanged", "s", "lower", 1.0),
    Row("git", "wall", "git clone of 50 MB", "s", "lower", 1.0),
    Row("far_up", "rate", "exec up, 50 ms away", "MB/s", "higher", 1.0),
    Row("far_down", "rate", "exec down, 50 ms away", "MB/s", "higher", 1.0),
    Row("far_put", "rate", "sftp put, 50 ms away", "MB/s", "higher", 1.0),
    Row("far_get", "rate", "sftp get, 50 ms away", "MB/s", "higher", 1.0),
    Row("sequence", "rate", "100 logins in a row", "1/s", "higher", 1.0),
    Row("login", "wall", "ssh host true", "ms", "lower", 1.25),
    Row("login", "cpu", "ssh host true, CPU with its shell", "ms", "lower"),
    Row("parallel", "wall", "20 logins at once", "ms", "lower", 1.25),
    Row("create", "shell", "new session to first byte", "ms", "lower"),
    Row("create", "control", "new session by control socket", "ms", "lower"),
    Row("attach", "first", "attach to first byte", "ms", "lower"),
    Row("attach_full", "last", "attach, 10,000 lines, last byte; tmux", "ms",
        "lower"),
    Row("attach_full", "cpu", "attach, 10,000 lines, CPU; tmux", "ms",
        "lower", 20, aim_is_ratio=False),
    Row("attach_full", "size", "attach, 10,000 lines, sent; tmux", "KiB",
        "lower"),
    Row("echo_idle", "p50", "echo of a key, p50", "ms", "lower", 1.25),
    Row("echo_idle", "p99", "echo of a key, p99", "ms", "lower", 1.25,
        stat="p99"),
    Row("echo_flood", "p50", "echo beside a flood, p50", "ms", "lower", 1.25),
    Row("echo_flood", "p99", "echo beside a flood, p99", "ms", "lower", 1.25,
        stat="p99"),
    *rate("forward_down_aes", "ssh -L down, aes128-gcm", 1.0),
    *rate("forward_down_chacha", "ssh -L down, chacha20", 1.0),
    *rate("forward_up_aes", "ssh -L up, aes128-gcm", 1.0),
    *rate("forward_up_chacha", "ssh -L up, chacha20", 1.0),
    Row("forward_ping", "p50", "ssh -L, a byte and back, p50", "ms", "lower",
        1.25),
    Row("forward_ping", "p99", "ssh -L, a byte and back, p99", "ms", "lower",
        1.25, stat="p99"),
    Row("session", "keeper_private", "idle session's keeper, private dirty",
        "KiB", "lower", 700, aim_is_ratio=False),
    Row("session", "keeper_pss", "idle session's keeper, PSS", "KiB",
        "lower"),
    Row("session", "conn_dirty", "attached connection, dirty", "KiB", "lower",
        1.0),
    Row("session", "conn_pss", "attached connection, PSS", "KiB", "lower",
        1.0),
    Row("session", "dirty", "session and connection, dirty", "KiB", "lower"),
    Row("session", "pss", "session and connection, PSS", "KiB", "lower"),
    Row("connection", "private", "idle connection, private dirty", "KiB",
        "lower"),
    Row("connection", "dirty", "idle connection, dirty", "KiB", "lower", 1.0),
    Row("connection", "pss", "idle connection, PSS", "KiB", "lower", 1.0),
    Row("many", "create", "200 sessions, to make them", "s", "lower"),
    Row("many", "private", "200 sessions, private dirty", "MiB", "lower"),
    Row("many", "pss", "200 sessions, PSS", "MiB", "lower"),
    Row("many", "cpu", "200 sessions, idle CPU of one core", "%", "lower"),
    Row("full", "private", "10,000 lines, private dirty; tmux", "KiB",
        "lower", 4096, aim_is_ratio=False),
    Row("box_make", "new_cold", "new native sandbox; bwrap", "ms", "lower", 5,
        aim_is_ratio=False),
    Row("box_make", "new_pool", "new native sandbox, of a pool", "ms",
        "lower"),
    Row("box_make", "login_cold", "login that makes one; into one there",
        "ms", "lower"),
    Row("box_make", "login_pool", "login, of a pool; into one there", "ms",
        "lower"),
    Row("box_make", "above", "the same, above one into one there", "ms",
        "lower", 10, aim_is_ratio=False),
    Row("box_make", "attach", "attach to a session in one", "ms", "lower"),
    *(Row("box_command", peer, f"command in a native sandbox; {other}", "ms",
          "lower") for peer, other in (
              ("sshd", "sshd's, without one"), ("bwrap", "bwrap"),
              ("runc", "runc exec"), ("docker", "docker exec"))),
    Row("box_sleep", "suspend", "native sandbox, suspended", "ms", "lower"),
    Row("box_sleep", "resume", "native sandbox, resumed", "ms", "lower"),
    Row("box_snapshot", "take", "snapshot of 200 MB; tar and zstd", "s",
        "lower"),
    Row("box_snapshot", "restore", "restore of 200 MB; zstd and tar", "s",
        "lower"),
    Row("box_many", "create", "200 native sandboxes, to make them", "s",
        "lower"),
    Row("box_many", "memory", "200 native sandboxes, memory", "MiB", "lower",
        100, aim_is_ratio=False),
    *engine("log", "log lines", 4),
    *engine("sgr", "colours", 3),
    *engine("full", "full screen", 4),
    *engine("cjk", "wide characters", 1.5),
    Row("screen", "idle_kib", "engine and libtsm, idle 80x24", "KiB", "lower",
        150, aim_is_ratio=False),
    Row("screen", "log_80x24_kib", "with 10,000 lines of logs", "KiB",
        "lower", 4096, aim_is_ratio=False),
    Row("screen", "sgr_80x24_kib", "with 10,000 lines of colours", "KiB",
        "lower", 4096, aim_is_ratio=False),
]

# What changes little from round to round is measured in so many.
FEW = {"scp_small": 3, "git": 3, "sequence": 2, "session": 2, "connection": 2, "many": 1,
       "viewers_50": 2, "full": 2, "box_snapshot": 3, "box_many": 1}
SIDES = ("berth", "openssh")


def chosen(patterns):
    """Measures, in the order of the table, that the patterns name."""
    names = list(dict.fromkeys(row.measure for row in ROWS))
    if not patterns:
        return names
    return [n for n in names if any(fnmatch.fnmatch(n, p) for p in patterns)]


def measures():
    """name -> function(bench, side) -> {metric: sample or samples}"""
    import forwards
    import logins
    import memory
    import sandboxes
    import screen
    import streams
    import transfers
    import viewers

    return {**streams.MEASURES, **transfers.MEASURES, **logins.MEASURES,
            **forwards.MEASURES, **viewers.MEASURES, **memory.MEASURES, **screen.MEASURES,
            **sandboxes.MEASURES}


def add(samples, measure, side, found):
    for metric, value in found.items():
        values = value if isinstance(value, list) else [value]
        samples[f"{measure}.{metric}"][side] += values


def run(names, rounds, sizes, say):
    """Samples of all rounds: key -> side -> list. A different side begins in
    every round, so that what the machine does besides hits both."""
    import servers

    table = measures()
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    bench = servers.Bench(sizes)
    try:
        for i in range(rounds):
            order = SIDES if i % 2 == 0 else SIDES[::-1]
            for name in names:
                if i >= FEW.get(name, rounds):
                    continue
                for side in order:
                    start_s = time.monotonic()
                    found = table[name](bench, bench.side(side))
                    add(samples, name, side, found)
                    say(i, name, side, found, time.monotonic() - start_s)
    finally:
        bench.close()
    return {key: dict(sides) for key, sides in samples.items()}


def say_sample(i, name, side, found, seconds):
    said = " ".join(
        f"{metric}={report.number(report.median(value))}"
        if isinstance(value, list) else f"{metric}={report.number(value)}"
        for metric, value in found.items()
    )
    if said:
        print(f"round {i + 1}  {name:19} {side:8} {seconds:5.1f} s  {said}",
              file=sys.stderr, flush=True)


def versions():
    import servers

    return {
        "openssh": report.output_of("ssh", "-V").split(",")[0],
        "libssh": report.output_of(
            "dpkg-query", "-W", "-f", "libssh ${Version}", "libssh-4"),
        "tmux": report.output_of("tmux", "-V"),
        "dtach": report.output_of("dtach", "--version").split(",")[0],
        "berth": report.output_of(str(servers.berth.BUILD / "berthd"),
                                  "--version"),
    }


def arguments(argv):
    p = argparse.ArgumentParser(prog="bench", description=__doc__)
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--only", default="", metavar="GLOBS",
                   help="measures to run, comma-separated, as in --list")
    p.add_argument("--quick", action="store_true",
                   help="small sizes, for a look whether it works")
    p.add_argument("--markdown", action="store_true",
                   help="the table for the README")
    p.add_argument("--list", action="store_true",
                   help="print the measures and what they tell")
    p.add_argument("--out", type=pathlib.Path, default=RESULT)
    args = p.parse_args(argv)
    args.names = chosen([x for x in args.only.split(",") if x])
    if not args.names:
        p.error(f"no measure is called {args.only}; see --list")
    if args.rounds < 1:
        p.error("--rounds must be at least 1")
    return args


def list_rows(names):
    for row in ROWS:
        if row.measure in names:
            aim = f"  ({row.aim_text()})" if row.aim is not None else ""
            print(f"{row.measure:19} {row.name}, {row.unit}{aim}")


def main(argv):
    args = arguments(argv)
    if args.list:
        list_rows(args.names)
        return 0
    random.seed(1)
    samples = run(args.names, args.rounds, QUICK if args.quick else Sizes(),
                  say_sample)
    info = report.about(args.rounds, versions())
    args.out.parent.mkdir(exist_ok=True)
    report.save(args.out, report.document(ROWS, samples, info))
    table = report.markdown_table if args.markdown else report.text_table
    print(f"{report.heading(info)}\n\n{table(ROWS, samples)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
