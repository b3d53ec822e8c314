"""Files in and out with OpenSSH's own clients: every byte, every name, every
attribute, and what berth writes down about it.
"""

import hashlib
import os
import signal
import struct
import subprocess
import time

import pytest

import procs
from berth import IS_ROOT, RELEASE, end, run, wait_for
from files import (
    SIZES, Raw, at, names_of, noise, options, scp, sftp, sftp_ok, sha, transfers,
    workspace,
)

MEG = 1 << 20
WAYS = {"sftp": [], "scp -O": ["-O"]}


def server_of(srv, box):
    """The sftp-server process of a sandbox's one session."""
    pid = srv.session(box)["pid"]
    assert procs.get(pid).comm == "sftp-server"
    return pid


# ---- every byte ------------------------------------------------------------


@pytest.mark.ordinary
@pytest.mark.parametrize("way", WAYS)
def test_every_size_is_the_same_there_and_back(srv, box, tmp_path, way):
    """Sizes around a packet's; both of scp's ways, and c3: exit 0 and nothing
    on stderr.
    """
    opts = WAYS[way]
    for size in SIZES:
        name = f"f{size}"
        want = noise(tmp_path / name, size)
        for args in (
            [tmp_path / name, at(box, name)],
            [at(box, name), tmp_path / f"{name}.back"],
        ):
            done = scp(srv, *opts, *args)
            assert (done.returncode, done.stdout, done.stderr) == (
                0, b"", b""), done
        assert sha(tmp_path / f"{name}.back") == want
        assert srv.out(box, f"sha256sum <{name}").split()[0] == want


def test_one_sftp_session_does_it_all(srv, box, tmp_path):
    """put, get, ls, rename, symlink, rm, df over one channel."""
    want = noise(tmp_path / "f", 3 * MEG + 7)
    text = sftp_ok(
        srv, box,
        f"pwd\nmkdir d\nput {tmp_path}/f d/f\nget d/f {tmp_path}/g\n"
        "rename d/f d/g\nsymlink g d/l\nls -l d\nrm d/l\nrm d/g\nrmdir d\n"
        "ls\n",
    )
    assert f"Remote working directory: {workspace(srv, box)}\n" in text
    assert sha(tmp_path / "g") == want
    assert list(workspace(srv, box).iterdir()) == []


@pytest.mark.parametrize("who", ["client", "server", "both"])
def test_b4_keys_change_in_mid_transfer(fresh, box, tmp_path, who):
    """Both directions; whoever begins it, or both at once."""
    srv = fresh(**{"server__rekey_limit": "2M"} if who != "client" else {})
    opts = ["-o", "RekeyLimit=2M"] if who != "server" else []
    want = noise(tmp_path / "f", 12 * MEG)
    text = sftp_ok(
        srv, box,
        f"put {tmp_path}/f f\nget f {tmp_path}/g\nput {tmp_path}/g h\n",
        *opts, timeout=120,
    )
    assert text and sha(tmp_path / "g") == want
    assert srv.out(box, "sha256sum <h").split()[0] == want
    verbose = srv.ssh(
        box, f"head -c {6 * MEG} /dev/zero; cat >/dev/null",
        ["-v", *opts], input=bytes(6 * MEG), timeout=60)
    assert verbose.returncode == 0 and len(verbose.stdout) == 6 * MEG
    assert verbose.stderr.count(b"SSH2_MSG_NEWKEYS received") >= 4


@pytest.mark.timeout(240)
@pytest.mark.parametrize("way", WAYS)
def test_300_megabytes_there_and_back(fresh, box, tmp_path, way):
    """Longer than any window, limit or buffer; of a release."""
    if not (RELEASE / "berthd").exists():
        pytest.skip("explained: no release build here")
    srv = fresh(build=RELEASE)
    block, n = os.urandom(MEG), 300
    digest = hashlib.sha256()
    with (tmp_path / "f").open("wb") as f:
        for i in range(n):
            part = bytes([i % 256]) + block[1:]
            f.write(part)
            digest.update(part)
    for args in (
        [tmp_path / "f", at(box, "f")], [at(box, "f"), tmp_path / "g"],
    ):
        done = scp(srv, *WAYS[way], *args, timeout=100)
        assert (done.returncode, done.stderr) == (0, b""), done
    with (tmp_path / "g").open("rb") as f:
        back = hashlib.file_digest(f, "sha256")
    assert back.hexdigest() == digest.hexdigest()
    if way == "sftp":
        assert names_of(transfers(srv, box)) == [
            ("in", "f", n * MEG, "done"), ("out", "f", n * MEG, "done")]


@pytest.mark.parametrize("size", [1, 511, 32768, 102401, 261120])
def test_c8_odd_request_sizes(srv, box, tmp_path, size):
    """Requests larger than a packet, and tiny ones."""
    total = 20_000 if size < 512 else MEG
    want = noise(tmp_path / "f", total)
    done = run(
        ["sftp", "-q", "-B", size, *options(srv), "-b", "-",
         f"{box}@127.0.0.1"], 90,
        input=f"put {tmp_path}/f r\nget r {tmp_path}/g\n".encode(),
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert sha(tmp_path / "g") == want


def test_c8_requests_that_no_client_sends(srv, box):
    """Empty and far reads answer; a packet that cannot be ends its channel
    and nothing else.
    """
    raw = Raw(srv, box)
    h = raw.open("f", 0x1 | 0x2 | 0x8)
    assert raw.write(h, 0, b"") == (Raw.STATUS, 0)
    assert raw.write(h, 0, b"abc") == (Raw.STATUS, 0)
    for offset, length in ((0, 0), (3, 10), ((1 << 63) - 1, 10)):
        kind, body = raw.call(
            Raw.READ, h + struct.pack(">QI", offset, length))
        assert kind in (Raw.STATUS, Raw.DATA)
        if kind == Raw.DATA:
            assert body[:4] == bytes(4)
    raw.child.stdin.write(struct.pack(">I", 0xFFFFFFFF) + b"x" * 100)
    raw.child.stdin.flush()
    assert raw.child.stdout.read() == b""
    assert raw.child.wait(30) != 0
    assert srv.out(box, "echo well") == "well\n"
    wait_for(lambda: not srv.sessions(box), 20, "gone")


# ---- C1 to C17: as OpenSSH's server has it ---------------------------------


def test_c1_plain_rename_does_not_replace(srv, box):
    """Unlike posix-rename."""
    srv.out(box, "echo 1 >a; echo 2 >b")
    assert sftp(srv, box, "rename -l a b\n").returncode == 1
    assert srv.out(box, "cat a b") == "1\n2\n"
    sftp_ok(srv, box, "rename a b\n")
    assert srv.out(box, "cat b; ls") == "1\nb\n"


def test_c3_a_clean_end_is_quiet(srv, box, tmp_path):
    """A good transfer ends with 0 and nothing on stderr, a bad one does not,
    and a client that closes without a word is no failure.
    """
    noise(tmp_path / "f", 1000)
    assert "Remote working directory" in sftp_ok(srv, box, "pwd\n")
    for args in ([tmp_path / "f", at(box, "f")], [at(box, "f"), tmp_path]):
        done = scp(srv, *args)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert sftp(srv, box, "get nothing\n").returncode == 1
    raw = Raw(srv, box)
    raw.child.stdin.close()
    assert (raw.child.stdout.read(), raw.child.wait(20)) == (b"", 0)
    assert raw.child.stderr.read() == b""


def test_c4_a_huge_directory(srv, box):
    """60,000 names, and memory that stays small."""
    srv.out(box, "mkdir d; cd d; seq -f %0200.0f 60000 | xargs touch",
            timeout=90)
    raw = Raw(srv, box)
    kind, handle = raw.call(11, Raw.text("d"))  # OPENDIR
    assert kind == Raw.HANDLE
    names, largest = set(), 0
    while True:
        kind, body = raw.call(12, handle)  # READDIR
        largest = max(largest, len(body))
        if kind == Raw.STATUS:
            assert struct.unpack(">I", body[:4])[0] == 1  # EOF
            break
        (n,) = struct.unpack(">I", body[:4])
        names |= {body[i: i + 200] for i in find_names(body, n)}
    assert len(names) == 60000
    assert largest < 256 * 1024
    raw.child.stdin.close()
    assert raw.child.wait(20) == 0
    text = sftp_ok(srv, box, "ls -1 d\n", timeout=90)
    assert text.count("\n") == 60001  # and the command


def find_names(body, n):
    """Where the 200-byte names of a NAME packet begin."""
    at_, found = 4, []
    for _ in range(n):
        (size,) = struct.unpack(">I", body[at_: at_ + 4])
        if size == 200:
            found.append(at_ + 4)
        at_ += 4 + size
        (size,) = struct.unpack(">I", body[at_: at_ + 4])
        at_ += 4 + size
        (flags,) = struct.unpack(">I", body[at_: at_ + 4])
        at_ += 4 + 8 * bool(flags & 1) + 8 * bool(flags & 2) \
            + 4 * bool(flags & 4) + 8 * bool(flags & 8)
    return found


def test_c6_a_symlink_keeps_its_target(srv, box):
    """OpenSSH's order of arguments, and the text as it was given."""
    sftp_ok(srv, box, "mkdir s\nsymlink ../target s/lnk\n")
    assert srv.out(box, "readlink s/lnk") == "../target\n"


def test_c10_a_tilde_is_the_home(srv, box, tmp_path):
    """Of the sandbox; nothing is ever named `~`."""
    noise(tmp_path / "f", 10)
    for target in ("~/t1", "", "sub/"):
        srv.out(box, "mkdir -p sub")
        done = scp(srv, tmp_path / "f", at(box, target))
        assert (done.returncode, done.stderr) == (0, b""), target
    assert srv.out(box, "ls . sub | sort") == "\n.:\nf\nf\nsub\nsub:\nt1\n"
    done = scp(srv, tmp_path / "f", at(box, "~no_such_user_zz/t2"))
    assert done.returncode != 0 and done.stderr
    assert srv.out(box, "ls -d '~'* 2>/dev/null; true") == ""


def test_c11_spaces_and_quotes(srv, box, tmp_path):
    """In sftp mode a name is a name; -O goes through the shell once."""
    srv.out(box, "echo keep >uc")
    noise(tmp_path / "f", 10)
    assert scp(srv, tmp_path / "f", at(box, "uc opy")).returncode == 0
    assert scp(
        srv, "-O", tmp_path / "f", at(box, "uc\\ opy2")).returncode == 0
    assert scp(srv, "-O", tmp_path / "f", at(box, "uc opy3")).returncode == 1
    assert srv.out(box, "cat uc; ls") == "keep\nuc\nuc opy\nuc opy2\n"
    srv.out(box, "mkdir d")
    for name in ("'", '"', "$HOME", ";id", "&", "*", "[a]", "-rf", "\\",
                 "end ", "#", "%n"):
        (tmp_path / name).write_bytes(name.encode())
        source = f"./{name}"
        done = scp(srv, source, at(box, "d/"), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, b""), name
        assert (workspace(srv, box) / "d" / name).read_bytes() == \
            name.encode()


def test_c12_login_files_that_print(srv, box, tmp_path):
    """sftp-server starts without the user's shell."""
    srv.out(box, "for f in .bashrc .profile .bash_profile; do"
                 " echo 'echo hello from rc' >$f; done")
    noise(tmp_path / "f", 10)
    assert scp(srv, tmp_path / "f", at(box, "g")).stderr == b""
    assert "Remote working directory" in sftp_ok(srv, box, "pwd\n")


def test_c14_a_link_leads_no_further_than_a_shell(as_root, srv, box, tmp_path):
    """There is no root directory but the sandbox's user: through a link of
    its own it neither reads nor writes what that user may not.
    """
    del as_root
    noise(tmp_path / "f", 100)
    before = sorted(os.listdir(srv.state))
    sftp_ok(srv, box, f"symlink {srv.state} esc\nput {tmp_path}/f f\n")
    for batch in (
        f"put {tmp_path}/f esc/newfile", "mkdir esc/d", "rename f esc/f",
        f"get esc/berth.db {tmp_path}/got", "rm esc/berth.db", "ls esc",
        f"get {srv.state}/berth.db {tmp_path}/got", "chmod 777 esc",
    ):
        done = sftp(srv, box, batch + "\n")
        assert done.returncode == 1, (batch, done)
    assert not (tmp_path / "got").exists()
    assert sorted(os.listdir(srv.state)) == before
    assert (srv.state.stat().st_mode & 0o777) == 0o700
    assert (workspace(srv, box) / "f").exists()


def test_c15_statvfs(srv, box):
    """Blocks of a size that is not zero."""
    text = sftp_ok(srv, box, "df -h\n")
    assert "%" in text and "Size" in text


def test_c16_attributes(srv, box, tmp_path):
    """put -p in both ways; a plain put obeys the umask; truncation."""
    noise(tmp_path / "f", 100)
    os.chmod(tmp_path / "f", 0o751)
    then = 981173045
    os.utime(tmp_path / "f", (then, then))
    assert scp(srv, "-p", tmp_path / "f", at(box, "g")).returncode == 0
    assert scp(srv, "-O", "-p", tmp_path / "f", at(box, "h")).returncode == 0
    assert srv.out(box, "stat -c '%a %Y' g h") == f"751 {then}\n" * 2
    os.chmod(tmp_path / "f", 0o666)
    sftp_ok(srv, box, f"put {tmp_path}/f i\n")
    assert srv.out(box, "stat -c %a i") == "644\n"
    raw = Raw(srv, box)
    h = raw.open("i", 0x2)
    # FSETSTAT with a size, then SETSTAT with nothing
    assert raw.call(10, h + struct.pack(">IQ", 1, 7))[1][:4] == bytes(4)
    assert raw.call(9, Raw.text("i") + bytes(4))[1][:4] == bytes(4)
    raw.close(h)
    assert srv.out(box, "stat -c %s i") == "7\n"


def test_c17_resume_after_a_cut(srv, box, tmp_path):
    """What is there is a prefix; reput and reget complete it."""
    want = noise(tmp_path / "f", 24 * MEG)
    whole = (tmp_path / "f").read_bytes()
    child = subprocess.Popen(
        ["sftp", "-q", *options(srv), "-l", "40000", f"{box}@127.0.0.1"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT)
    child.stdin.write(f"put {tmp_path}/f f\n".encode())
    child.stdin.flush()
    there = workspace(srv, box) / "f"
    wait_for(lambda: there.exists() and there.stat().st_size > 2 * MEG, 30,
             "some of it")
    pid = server_of(srv, box)
    end(child)
    wait_for(lambda: not procs.get(pid), 10, "no process, so no handle")
    part = there.read_bytes()
    assert 0 < len(part) < len(whole) and whole.startswith(part)
    (row,) = names_of(transfers(srv, box))
    assert row == ("in", "f", len(part), "cut")
    sftp_ok(srv, box, f"reput {tmp_path}/f f\n")
    assert sha(there) == want
    (tmp_path / "g").write_bytes(whole[: 5 * MEG])
    sftp_ok(srv, box, f"reget f {tmp_path}/g\n")
    assert sha(tmp_path / "g") == want
    assert names_of(transfers(srv, box))[1:] == [
        ("in", "f", len(whole) - len(part), "done"),
        ("out", "f", len(whole) - 5 * MEG, "done"),
    ]


NAMES = [
    b"new\nline", b"esc\x1b[31m", b"\xc3\xa4\xe6\xbc\xa2", b"-dash",
    "漢".encode() * 85, b"tab\t", b"q\"uo", b"back\\slash", b"\xff\xfe",
    b"a\" flags READ mode 0666", b"cr\r\nlf", b"x" * 255,
]


def test_names_of_every_kind(srv, box):
    """They work, and each is one printable line of the store."""
    raw = Raw(srv, box)
    for name in NAMES:
        h = raw.open(name)
        assert raw.write(h, 0, b"12345") == (Raw.STATUS, 0)
        raw.close(h)
    raw.child.stdin.close()
    assert raw.child.wait(20) == 0
    there = sorted(os.listdir(os.fsencode(workspace(srv, box))))
    assert there == sorted(NAMES)
    rows = transfers(srv, box)
    assert [r["path"] for r in rows] == [
        "new\\nline", "esc\\e[31m", "ä漢", "-dash", "漢" * 75 + "...",
        "tab\\t", 'q"uo', "back\\\\slash", "\\xff\\xfe",
        'a" flags READ mode 0666', "cr\\r\\nlf", "x" * 255,
    ]
    # So long a name leaves sftp-server's message no room for its figures.
    assert [r["status"] for r in rows] == [
        "unknown" if n == NAMES[4] else "done" for n in NAMES]
    assert [r["bytes"] for r in rows] == [
        0 if n == NAMES[4] else 5 for n in NAMES]


# ---- who may, and how ------------------------------------------------------


def test_a_viewer_gets_none_of_it(srv, box, tmp_path):
    """Neither way, and hears why."""
    srv.out(box, "echo secret >f")
    key = srv.add_key(f"v{box}", 'role="viewer"')
    done = sftp(srv, box, f"get f {tmp_path}/f\n", key=key)
    assert done.returncode == 255 or done.returncode == 1
    assert b"berth: this key may only watch" in done.stderr
    for opts in ([], ["-O"]):
        done = scp(srv, *opts, at(box, "f"), tmp_path / "f", key=key)
        assert done.returncode != 0 and b"berth: " in done.stderr
    assert not (tmp_path / "f").exists()
    writer = srv.add_key(f"w{box}", 'role="writer"')
    sftp_ok(srv, box, f"get f {tmp_path}/f\n", key=writer)
    assert (tmp_path / "f").read_text() == "secret\n"


def test_modes(fresh, box, tmp_path):
    """ro reads and changes nothing; off is a sentence; a missing binary too.
    """
    noise(tmp_path / "f", 10)
    srv = fresh(sftp__mode="ro")
    srv.out(box, "echo x >f")
    sftp_ok(srv, box, f"get f {tmp_path}/g\n")
    for batch in (f"put {tmp_path}/f n\n", "rm f\n", "mkdir d\n",
                  "rename f g\n", "chmod 600 f\n"):
        assert sftp(srv, box, batch).returncode == 1
    assert srv.out(box, "ls; stat -c %a f") == "f\n644\n"
    srv = fresh(sftp__mode="off")
    done = sftp(srv, box, "pwd\n")
    assert done.returncode != 0
    assert done.stderr.startswith(
        b"berth: file transfer by sftp is switched off here\n")
    assert srv.ssh(box, "exit 3").returncode == 3
    srv = fresh(sandbox__sftp_server="/nonexistent/sftp-server")
    done = sftp(srv, box, "pwd\n")
    assert done.stderr.startswith(
        b"berth: no file transfer: the sandbox has no "
        b"/nonexistent/sftp-server (package openssh-sftp-server, option "
        b"sandbox.sftp_server)\n")
    assert srv.sessions(box, True) == []


def test_a_forced_command_wins(srv, box, tmp_path):
    """command= stands in the place of sftp-server; internal-sftp is one."""
    srv.out(box, "mkdir sub; echo x >sub/f")
    key = srv.add_key(
        f"c{box}", 'command="echo $SSH_ORIGINAL_COMMAND >said"')
    assert sftp(srv, box, "pwd\n", key=key).returncode != 0
    assert srv.out(box, "cat said").rstrip().endswith("/sftp-server")
    through = srv.add_key(f"t{box}", 'command="exec $SSH_ORIGINAL_COMMAND"')
    sftp_ok(srv, box, f"get sub/f {tmp_path}/f\n", key=through)
    key = srv.add_key(f"i{box}", 'restrict,command="internal-sftp -R"')
    sftp_ok(srv, box, f"get sub/f {tmp_path}/g\n", key=key)
    assert sftp(srv, box, "rm sub/f\n", key=key).returncode == 1
    for command in ("id", None):
        done = srv.ssh(box, command, ["-T"], key=key)
        assert (done.returncode, done.stdout) == (255, b"")
        assert b"this key allows sftp connections only" in done.stderr
    key = srv.add_key(f"d{box}", 'command="internal-sftp -d sub"')
    assert sftp_ok(srv, box, "ls\n", key=key).split()[-1] == "f"


@pytest.mark.ordinary
def test_the_same_place_for_shell_exec_and_sftp(srv, box):
    """HOME, USER, SHELL, PATH and the directory, before a login file may
    change them; nothing that is not on the list comes from a client.
    """
    keys = ("HOME", "LOGNAME", "PATH", "SHELL", "USER")
    show = ("(tr '\\0' '\\n' </proc/$$/environ |"
            f" grep -E '^({'|'.join(keys)})=' | sort; pwd)")
    by_exec = srv.out(box, show)
    assert len(by_exec.split()) == len(keys) + 1
    piped = srv.ssh(box, None, ["-T"], input=show.encode() + b"\n")
    term = srv.term(box).ready()
    term.send(f"{show} >of_term\r")
    term.ready()
    assert piped.stdout.decode() == by_exec == srv.out(box, "cat of_term")
    term.send("exit\r")
    assert term.wait() == 0
    pwd = by_exec.split()[-1]
    assert sftp_ok(srv, box, "pwd\n").endswith(f"directory: {pwd}\n")
    raw = Raw(srv, box, "-o", "SetEnv=LANG=C.UTF-8 LD_PRELOAD=x IFS=y SHELL=z")
    if IS_ROOT:
        with open(f"/proc/{server_of(srv, box)}/environ", "rb") as f:
            got = sorted(e.decode() for e in f.read().split(b"\0") if e)
        assert by_exec.split()[:-1] == [
            e for e in got if e.split("=")[0] in keys]
        assert "LANG=C.UTF-8" in got
        assert not [e for e in got if e.startswith(("LD_", "IFS="))]
    raw.child.stdin.close()
    assert raw.child.wait(20) == 0


# ---- what is written down --------------------------------------------------


def test_rows_say_who_what_and_how_much(srv, box, tmp_path):
    """In, out, failed; v_transfers and audit; refused by the system."""
    noise(tmp_path / "f", 100_000)
    alice = srv.add_key(f"a{box}")
    sftp(srv, box, f"put {tmp_path}/f f\nget f {tmp_path}/g\n"
                   f"-put {tmp_path}/f /proc/no\nmkdir d\nrm f\n", key=alice)
    rows = transfers(srv, box)
    assert names_of(rows) == [
        ("in", "f", 100_000, "done"), ("out", "f", 100_000, "done"),
        ("in", "no", 0, "failed"),
    ]
    assert {r["identity"] for r in rows} == {f"a{box}"}
    assert all(r["finished"] >= r["started"] for r in rows)
    events = srv.sql(
        "SELECT event, identity, remote_addr, detail FROM audit"
        f" WHERE sandbox = '{box}' AND event IN ('transfer', 'file_change')"
        " ORDER BY id")
    home = workspace(srv, box)
    assert [(e["event"], e["detail"]) for e in events] == [
        ("transfer", f"done in 100000 bytes: {home}/f"),
        ("transfer", f"done out 100000 bytes: {home}/f"),
        ("file_change", f'mkdir name "{home}/d" mode 0777'),
        ("file_change", f'remove name "{home}/f"'),
        ("transfer", "failed in 0 bytes: /proc/no"),
    ]
    assert {e["identity"] for e in events} == {f"a{box}"}
    assert srv.row(box)["bytes_in"] > 100_000


def test_f2_a_cut_connection_leaves_totals_and_no_process(srv, box):
    """The client is killed with files open in both directions."""
    srv.out(box, f"head -c {MEG} /dev/zero >big")
    raw = Raw(srv, box)
    up = raw.open("up")
    for i in range(4):
        raw.write(up, i * 30_000, bytes(30_000))
    down = raw.open("big", 1)
    raw.call(Raw.READ, down + struct.pack(">QI", 0, 20_000))
    pid = server_of(srv, box)
    end(raw.child)
    wait_for(lambda: not procs.get(pid), 10, "sftp-server gone")
    assert names_of(transfers(srv, box)) == [
        ("in", "up", 120_000, "cut"), ("out", "big", 20_000, "cut")]
    assert (workspace(srv, box) / "up").stat().st_size == 120_000


def test_a_killed_sftp_server_leaves_no_row_open(srv, box):
    """It says nothing any more: cut, and its client hears of it."""
    raw = Raw(srv, box)
    h = raw.open("f")
    raw.write(h, 0, b"abc")
    wait_for(lambda: srv.sql(
        "SELECT * FROM v_transfers WHERE status = 'open'"
        f" AND sandbox = '{box}'"), 10, "an open row")
    os.kill(server_of(srv, box), signal.SIGKILL)
    assert raw.child.wait(20) == 255
    assert names_of(transfers(srv, box)) == [("in", "f", 0, "cut")]


def test_f7_a_lost_keeper_is_never_success(srv, box, tmp_path):
    """Cut in the middle by our own fault: the client fails too."""
    noise(tmp_path / "f", 24 * MEG)
    child = subprocess.Popen(
        ["scp", *options(srv), "-l", "40000", tmp_path / "f",
         at(box, "f")], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE)
    there = workspace(srv, box) / "f"
    wait_for(lambda: there.exists() and there.stat().st_size > MEG, 30, "f")
    pid = server_of(srv, box)
    os.kill(procs.get(pid).ppid, signal.SIGKILL)
    assert child.wait(30) not in (0, None)
    child.stderr.close()
    wait_for(lambda: not procs.get(pid), 20, "sftp-server gone")
    ((_, name, _, status),) = names_of(transfers(srv, box))
    assert (name, status) == ("f", "cut")


@pytest.mark.parametrize("how", ["killed", "upgraded"])
def test_a_transfer_outlives_berthd(fresh, box, how):
    """Its row is finished by the berthd that comes after."""
    srv = fresh(start=False)
    srv.install()
    srv.start()
    raw = Raw(srv, box)
    h = raw.open("f")
    raw.write(h, 0, b"abc")
    wait_for(lambda: srv.sql("SELECT * FROM transfer"), 10, "its row")
    if how == "upgraded":
        srv.berth_ok("upgrade")
    else:
        srv.kill()
    raw.write(h, 3, b"def")
    raw.close(h)
    g = raw.open("g")
    raw.write(g, 0, b"x")
    if how == "killed":
        raw.close(g)
        time.sleep(0.3)  # the keeper has heard it, and nobody else
        srv.start()
    else:
        raw.close(g)
    raw.child.stdin.close()
    assert raw.child.wait(20) == 0
    assert names_of(transfers(srv, box)) == [
        ("in", "f", 6, "done"), ("in", "g", 1, "done")]


def test_an_end_that_nobody_hears_is_told_later(fresh, box):
    """The session ends while there is no berthd: the keeper waits with what
    it knows.
    """
    srv = fresh()
    raw = Raw(srv, box)
    h = raw.open("f")
    raw.write(h, 0, b"abc")
    wait_for(lambda: srv.sql("SELECT * FROM transfer"), 10, "its row")
    pid = server_of(srv, box)
    srv.kill()
    raw.close(h)
    end(raw.child)
    wait_for(lambda: not procs.get(pid), 10, "sftp-server gone")
    srv.start()
    assert names_of(transfers(srv, box)) == [("in", "f", 3, "done")]


def test_rows_of_one_session_are_capped(srv, box):
    """Ten thousand, then one that says there were more; transfers go on."""
    raw = Raw(srv, box)
    for first in range(0, 10_100, 100):
        for i in range(first, first + 100):
            raw.ask(Raw.OPEN, Raw.text(f"f{i % 5}") + struct.pack(
                ">II", Raw.CREATE_WRITE, 0))
        handles = [raw.read()[1] for _ in range(100)]
        for h in handles:
            raw.ask(Raw.CLOSE, h)
        for _ in handles:
            assert raw.read()[1][:4] == bytes(4)
    raw.child.stdin.close()
    assert raw.child.wait(20) == 0
    wait_for(lambda: not srv.sessions(box), 30, "ended")
    counts = srv.sql(
        "SELECT status, count(*) AS n FROM v_transfers"
        f" WHERE sandbox = '{box}' GROUP BY status ORDER BY status")
    assert [(r["status"], r["n"]) for r in counts] == [
        ("done", 10_000), ("more", 1)]
    (more,) = srv.sql(
        "SELECT count(*) AS n FROM audit WHERE event = 'transfer_more'"
        f" AND sandbox = '{box}'")
    assert more["n"] == 1


def test_a_flood_of_log_lines_hurts_nobody(fresh, box):
    """What stands in the place of sftp-server is the sandbox's: lines without
    an end, with NULs, forged ones, as fast as it can.
    """
    srv = fresh(start=False)
    program = srv.public / "server"
    program.write_text(
        "#!/bin/bash\n"
        "printf 'open \"forged\" flags WRITE mode 0644\\r\\n' >&2\n"
        "printf 'close \"forged\" bytes read 0 written 77\\r\\n' >&2\n"
        "printf 'a\\0b\\r\\n\\r\\n\\n' >&2\n"
        "head -c 3000000 /dev/zero >&2\n"
        "yes 'open \"x\" flags READ mode 0644' | head -c 60000000 >&2\n"
        "head -c 1000000 /dev/urandom >&2\n"
        "echo done; exit 4\n")
    program.chmod(0o755)
    srv.options["sandbox.sftp_server"] = program
    srv.write_conf()
    srv.start()
    other = srv.term(box + "x").ready()
    child = srv.spawn(box, "sftp", ["-s"])
    assert child.stdout.read() == b"done\n"
    other.ready()
    assert (child.wait(60), child.stderr.read()) == (4, b"")
    assert names_of(transfers(srv, box))[0] == ("in", "forged", 77, "done")
    assert srv.log().count("transfer_lines_lost") == 1
    assert procs.rss_kib(srv.proc.pid) < 600 << 10


def test_b11_an_admin_kill_gives_a_status(srv, box):
    """And the row says how far it came."""
    raw = Raw(srv, box)
    h = raw.open("f")
    raw.write(h, 0, b"abc")
    srv.berth_ok("kill", srv.session(box)["id"])
    assert raw.child.wait(20) != 0
    assert names_of(transfers(srv, box)) == [("in", "f", 3, "cut")]


def test_b16_an_upload_that_nobody_reads_costs_bounded_memory(srv, box):
    """The window is wider than libssh's own, and still one."""
    child = srv.spawn(
        box, "echo up; head -c 5000000 | wc -c; exec sleep 100",
        stdin=subprocess.PIPE)
    assert child.stdout.readline() == b"up\n"
    (sshd,) = [p for p in procs.descendants(srv.proc.pid)
               if p.comm == "berth-sshd"]
    stdin = child.stdin.fileno()
    os.set_blocking(stdin, False)
    sent, grew, before = 0, time.monotonic(), procs.rss_kib(sshd.pid)

    def is_full():
        nonlocal sent, grew
        try:
            while sent < 64 * MEG:
                sent += os.write(stdin, bytes(65536))
                grew = time.monotonic()
        except BlockingIOError:
            pass
        return sent > 5_000_000 and time.monotonic() - grew > 2

    wait_for(is_full, 40, "every window is full")
    assert child.stdout.readline() == b"5000000\n"
    # Windows, pipes and the client's own buffers.
    assert sent < 5_000_000 + 12 * MEG, sent
    assert procs.rss_kib(sshd.pid) - before < 40 << 10
    end(child)
