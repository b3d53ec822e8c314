"""Records real programs for the comparison of terminals: runs each one under a
PTY with key strokes and pauses in a made-up home, and writes what it printed
to NAME-COLSxROWS.bin beside this file. Nothing of this machine gets into them:
the host is `host`, the user `me`, the home /tmp/home, the clock that of 2026.

Usage: record.py [NAME...]      (all without a name)
Programs that are not installed are left out and named. To record them needs
vim, less, htop, procps, tmux, mc, fish, git, python3, util-linux (unshare).
"""

import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "terminal"))
sys.dont_write_bytecode = True

from terminal import Terminal  # noqa: E402

HOME = pathlib.Path("/tmp/home")
MAX = 200_000

ENV = {
    "HOME": str(HOME), "USER": "me", "LOGNAME": "me", "HOSTNAME": "host",
    "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8",
    "COLORTERM": "truecolor", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin",
    "SHELL": "/bin/sh", "PS1": "me@host:~$ ", "TZ": "UTC", "PAGER": "less",
    "XDG_CONFIG_HOME": f"{HOME}/.config", "XDG_DATA_HOME": f"{HOME}/.data",
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_DATE": "2026-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05Z", "HISTFILE": "/dev/null",
    "TMUX_TMPDIR": str(HOME),
}

SOURCE = r'''/* A file to look at: keywords, strings, numbers. */
#include <stdio.h>

struct point { int x, y; const char *name; };

static int
add(int a, int b)
{
	if (a > 0 && b < 0x7fffffff - a)
		return a + b; /* "quoted" 'c' */
	return -1;
}

int
main(void)
{
	struct point p = { .x = 1, .y = 2, .name = "naïve 漢字" };

	for (int i = 0; i < 10; i++)
		printf("%d %s\n", add(p.x, i * 3.14), p.name);
	return 0;
}
'''


def make_home():
    shutil.rmtree(HOME, ignore_errors=True)
    HOME.mkdir(mode=0o755)
    (HOME / "a.c").write_text(SOURCE * 4)
    (HOME / "words.txt").write_text("".join(
        f"line {i} of a text with words, some of them wide: 漢字 {i * 7919}\n"
        + ("a long line " * 14 + "ends\n" if i % 9 == 0 else "")
        for i in range(300)))
    (HOME / "dir").mkdir()
    for i in range(30):
        (HOME / "dir" / f"file{i:02}").write_text("x" * i * 100)
    git = ["git", "-C", str(HOME), "-c", "user.name=Me", "-c",
           "user.email=me@example.org"]
    subprocess.run([*git, "init", "-q", "-b", "main"], check=True, env=ENV)
    for i in range(40):
        (HOME / "a.c").write_text(SOURCE * 4 + f"/* change {i} */\n")
        subprocess.run([*git, "add", "a.c"], check=True, env=ENV)
        subprocess.run([*git, "commit", "-q", "-m",
                        f"area{i % 5}: change number {i}\n\nWhy it was made."],
                       check=True, env=ENV)


# ---- what is typed: texts and pauses in seconds -----------------------------

def vim_keys():
    yield from (0.5, ":syntax on\r", ":set number cursorline\r", 0.2)
    yield from ("\x06", 0.2, "\x02", 0.1, "/return\r", 0.1, "n", "n", 0.2)
    yield from (":vsplit words.txt\r", 0.3, ":split a.c\r", 0.3, "\x17w",
                "G", 0.2, "ohello 漢字 é́🙂 typed\x1b", 0.2, "dd", "u", 0.2)
    yield from ("v5j$", 0.2, "y", "p", 0.2, ":set list\r", 0.2, "ggVGr.", 0.2,
                ":only\r", 0.3, ":help\r", 0.5, "\x06\x06", 0.3, ":qa!\r")


def less_keys():
    yield from (0.3, " ", 0.1, " ", 0.1, "j" * 12, 0.2, "/wide\r", 0.2, "n",
                "n", 0.1, "G", 0.2, "k" * 9, "g", 0.1, "-S\r", 0.2,
                "\x1b[C\x1b[C", 0.2, "h", 0.2, "q", "q")


def htop_keys():
    yield from (1.0, "t", 0.5, "\x1b[B" * 3, 0.4, "\x1b[15~", 0.4, "H", 0.5,
                "\x1bOQ", 0.4, "\x1b", 0.5, "q")


def top_keys():
    yield from (1.2, "1", 0.8, "c", 0.8, "x", "z", 0.8, "V", 0.8, "h", 0.5,
                "q", 0.5, "q")


def tmux_keys():
    yield from (0.5, "ls -l\r", 0.4, "\x02%", 0.4, "seq 1 200\r", 0.4, '\x02"',
                0.4, "vim -n -u NONE a.c\r", 0.5, "\x06", 0.3, "\x02o", 0.3,
                "yes | head -500\r", 0.5, "\x02[", 0.2, "\x1b[5~", 0.3, "q",
                "\x02z", 0.4, "\x02z", 0.4, "\x02c", 0.4, "less words.txt\r",
                0.4, " ", 0.3, "\x02p", 0.4, "\x02t", 0.5, "q",
                "\x02:kill-server\r")


def mc_keys():
    yield from (1.2, "\x1b[B" * 4, 0.3, "\t", 0.2, "\x1bOR", 0.4, "\x1b[21~",
                0.4, "\x1b[20~", 0.5, "\x1b[B\x1b[B\x1b[C\x1b[B", 0.4, "\x1b",
                0.8, "\x1b[21~", 0.5, "\r", 0.5)


def fish_keys():
    yield from (1.0, "echo hel", 0.3, "lo | string upper\r", 0.4, "ls di\t",
                0.6, "\r", 0.4, "for i in (seq 30); echo $i 漢字; end\r", 0.4,
                "cat a.c | head -30\r", 0.5, "ec\x1b[A", 0.4, "\x03", 0.3,
                "set_color red; echo red; set_color normal\r", 0.3, "exit\r")


def python_keys():
    yield from (0.6, "import sys\r", "[i ** 2 for i in range(40)]\r", 0.3,
                "def f(x):\r    return '漢' * x\r\r", 0.3, "f(30)\r", 0.2,
                "1/0\r", 0.3, "print('é́ 🙂 👩‍👧', 5)\r", 0.2,
                "\x1b[A\x1b[A\x1b[D\x1b[Dx\x7f\r", 0.2, "exit()\r")


def git_keys():
    yield from (0.4, " ", 0.2, " ", 0.2, "/change number 9\r", 0.2, "u", 0.2,
                "G", 0.2, "q")


def shell_keys():
    yield from (0.3, "seq 1 300\r", 0.3, "ls --color=always -la dir\r", 0.3,
                "echo a; clear; echo b\r", 0.2, "printf '\\033[1;31mred\\033[m'",
                "\x7f\x7f\x15", 0.2, "head -c 3000 /dev/zero | tr '\\0' x\r",
                0.3, "tput smcup; echo full; sleep .2; tput rmcup\r", 0.5,
                "exit\r")


PROGRESS = r'''
import sys, time
w = sys.stdout.write
for i in range(101):
    bar = "█" * (i // 3) + "▏▎▍▌▋▊▉"[i % 7] + " " * (34 - i // 3)
    w(f"\r\x1b[2K\x1b[32m{i:3}%\x1b[0m |{bar}| {i * 7919 % 977 / 10:.1f} MB/s")
    if i % 20 == 0:
        w(f"\r\x1b[2Kstep {i}: done\n")
    sys.stdout.flush()
w("\n")
for i in range(60):  # three bars, drawn in place
    w("\x1b[?25l")
    for k in range(3):
        n = min(60, i * (k + 1) // 2)
        w(f"\x1b[2K\x1b[3{k + 1}mjob {k}\x1b[0m \x1b[4{k + 1}m{' ' * n}\x1b[0m\n")
    w("\x1b[3A\x1b[?25h")
w("\x1b[3B\x1b[1;4;58;5;196mall\x1b[4:3mdone\x1b[0m\n")
'''


def random_bytes(n, seed):
    return random.Random(seed).randbytes(n)


def made_up():
    """Streams of no program: name -> bytes."""
    wide = ("漢字かな交じり文 한국어 ภาษาไทย हिन्दी é́ ｆｕｌｌ 🙂👩‍👧‍👦 ❤️ 🇩🇪 "
            "x\u0300\u0301y z\u200by \u202eabc\u202c العربية\r\n")
    pick = random.Random(3)
    cjk = "".join("".join(pick.sample(wide[:-2], 30)) + "\r\n"
                  for _ in range(300))
    return {
        "ff": b"\xff" * 3000 + b"\r\n" + bytes(range(128, 256)) * 40,
        "noise": random_bytes(60000, 1),
        "cjk": (wide * 40 + cjk).encode(),
        "seq": b"".join(b"%d\r\n" % i for i in range(1, 20001)),
        "states": states(2, 4000),
    }


def states(seed, n):
    """Sequences that full-screen programs use, drawn by lot."""
    r = random.Random(seed)
    texts = ["plain", "漢字", "e\u0301x", "🙂", "line\r\n", "\t", "\b", "\n",
             "a long line that goes on and on and on and wraps at the edge "]
    shapes = [
        "\x1b[{a};{b}H", "\x1b[{a}A", "\x1b[{a}B", "\x1b[{b}C", "\x1b[{b}D",
        "\x1b[{c}J", "\x1b[{c}K", "\x1b[{a}L", "\x1b[{a}M", "\x1b[{d}P",
        "\x1b[{d}@", "\x1b[{d}X", "\x1b[{d}S", "\x1b[{d}T", "\x1bM", "\x1bD",
        "\x1b[3{e};4{e}m", "\x1b[38;5;{f}m", "\x1b[48;2;{f};{f};{d}m",
        "\x1b[{g}m", "\x1b[m", "\x1b[4:{e}m", "\x1b[58:2::{f}:9:9m", "\x1b7",
        "\x1b8", "\x1b[{d};{h}r", "\x1b[r", "\x1b[?6h", "\x1b[?6l", "\x1b[4h",
        "\x1b[4l", "\x1b[?7l", "\x1b[?7h", "\x1b(0lqqk\x1b(B", "\x0e", "\x0f",
        "\x1b)0", "\x1b[?1049h", "\x1b[?1049l", "\x1b[?1002;1006h",
        "\x1b[?1002l", "\x1b[?2004h", "\x1b[?2004l", "\x1b[?25l", "\x1b[?25h",
        "\x1b[>{e}u", "\x1b[<u", "\x1b[>4;2m", "\x1b[>4m", "\x1b[{e} q",
        "\x1b]2;title {a}\x07", "\x1b]8;id={e};http://a/{b}\x1b\\link\x1b]8;;\x07",
        "\x1b]4;{f};rgb:{f:02x}/00/ff\x1b\\", "\x1b]104;{f}\x07",
        "\x1b]11;#10{f:02x}30\x07", "\x1b]111\x07", "\x1bH", "\x1b[g",
        "\x1b[{a}b", "\x1b=", "\x1b>", "\x1b[?1h", "\x1b[?1l", "\x1b[?1004h",
        "\x1b[?1004l", "\x1b[20h", "\x1b[20l", "\x1b[?69h\x1b[{d};{h}s",
        "\x1b[?69l", "\x1b[?5h", "\x1b[?5l", "\x1b[!p", "\x1b[1\"q",
        "\x1b[0\"q", "\x1b[?1J", "\x1b[?2K", "\x1b#8",
    ]
    out = []
    for _ in range(n):
        for _ in range(r.randrange(4)):
            out.append(r.choice(texts))
        out.append(r.choice(shapes).format(
            a=r.randrange(1, 25), b=r.randrange(1, 81), c=r.randrange(3),
            d=r.randrange(1, 9), e=r.randrange(1, 6), f=r.randrange(256),
            g=r.choice([1, 2, 3, 5, 7, 8, 9, 21, 22, 23, 24, 27, 29, 53]),
            h=r.randrange(10, 24)))
    return "".join(out).encode()


PROGRAMS = {
    "vim": (["vim", "-N", "-n", "-u", "NONE", "-i", "NONE", "a.c"], vim_keys),
    "less": (["less", "-R", "words.txt"], less_keys),
    "htop": (["htop", "-d", "5"], htop_keys),
    "top": (["top", "-d", "0.5"], top_keys),
    "tmux": (["tmux", "-f", "/dev/null", "-L", "rec"], tmux_keys),
    "mc": (["mc", "-u", "."], mc_keys),
    "fish": (["fish"], fish_keys),
    "python": (["/usr/bin/python3", "-q"], python_keys),
    "git": (["git", "log", "--stat", "--color=always", "--graph"], git_keys),
    "shell": (["bash", "--norc", "--noprofile"], shell_keys),
    "progress": (["/usr/bin/python3", "-c", PROGRESS], lambda: ()),
}

SIZES = {name: [(80, 24)] for name in PROGRAMS}
SIZES["vim"] += [(500, 200), (1, 1), (40, 10)]
SIZES["shell"] += [(1, 1), (132, 43)]
SIZES["progress"] += [(20, 5)]
SIZES["tmux"] += [(132, 43)]
SIZES["htop"] += [(500, 200)]
MADE_UP_SIZES = {name: [(80, 24)] for name in
                 ("ff", "noise", "cjk", "seq", "states")}
MADE_UP_SIZES["cjk"] += [(1, 1), (7, 3)]
MADE_UP_SIZES["states"] += [(500, 200), (20, 6)]
MADE_UP_SIZES["noise"] += [(1, 1)]


def isolated(command):
    """Its own host name and processes, when this user may have that."""
    prefix = ["unshare", "--uts", "--pid", "--mount-proc", "--fork", "sh",
              "-c", 'hostname host; exec "$@"', "sh"]
    done = subprocess.run([*prefix, "true"], capture_output=True, check=False)
    return [*prefix, *command] if done.returncode == 0 else command


def record(name, cols, rows):
    command, keys = PROGRAMS[name]
    with Terminal(isolated(["env", "-i", "-C", HOME,
                            *(f"{k}={v}" for k, v in ENV.items()), *command]),
                  cols, rows) as terminal:
        for key in keys():
            if isinstance(key, str):
                terminal.type(key)
                time.sleep(0.05)
            else:
                time.sleep(key)
        try:
            terminal.wait(10)
        except AssertionError:
            print(f"{name} {cols}x{rows}: still runs, cut here")
        return terminal.raw()


def private_words():
    """What must not be found in a recording."""
    names = {os.uname().nodename, os.environ.get("USER", ""), str(HERE)}
    return [n.encode() for n in names if len(n) > 3]


def save(name, cols, rows, data):
    data = data[:MAX]
    for word in private_words():
        if word in data:
            print(f"{name}: {word!r} is in it, not saved")
            return
    path = HERE / f"{name}-{cols}x{rows}.bin"
    path.write_bytes(data)
    print(f"{path.name}: {len(data)} bytes")


def main(names):
    make_home()
    try:
        for name, (command, _) in PROGRAMS.items():
            if names and name not in names:
                continue
            if not shutil.which(command[0]):
                print(f"{name}: {command[0]} is not installed")
                continue
            for cols, rows in SIZES[name]:
                save(name, cols, rows, record(name, cols, rows))
        for name, data in made_up().items():
            for cols, rows in MADE_UP_SIZES[name]:
                if not names or name in names:
                    save(name, cols, rows, data)
    finally:
        shutil.rmtree(HOME, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
