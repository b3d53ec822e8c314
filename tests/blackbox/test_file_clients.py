"""File transfer with everybody else's clients, and the ways in which editors
and automation come in: none of them is told anything of berth.
"""

import asyncio
import io
import os
import shutil
import stat
import subprocess
import tarfile
import textwrap

import asyncssh
import paramiko
import pytest

import raw
from berth import end, run, wait_for
from files import (
    at, noise, options, scp, sha, ssh_command, transfers, workspace,
)
from test_clients import dbclient, plink

MEG = 1 << 20


@pytest.fixture(autouse=True)
def home(srv, monkeypatch):
    """Nothing of these clients is written into the home of who tests."""
    monkeypatch.setenv("HOME", str(srv.dir))


def putty(srv, program, *args):
    """plink's options as psftp and pscp have them."""
    opts = plink(srv, "x")
    return [program, *[str(o) for o in opts[2:-1]], *args]


def there_and_back(srv, box, tmp_path, up, down, size=3 * MEG + 1):
    """up(local, name) and down(name, local) keep every byte."""
    want = noise(tmp_path / "f", size)
    up(tmp_path / "f", "f")
    assert srv.out(box, "sha256sum <f").split()[0] == want
    down("f", tmp_path / "g")
    assert sha(tmp_path / "g") == want


def ok(args, timeout=90, **kw):
    done = run(args, timeout, **kw)
    assert done.returncode == 0, done
    return done


# ---- programs --------------------------------------------------------------


def test_psftp(srv, box, tmp_path):
    """PuTTY's, by a batch of commands."""
    def batch(text):
        (tmp_path / "batch").write_text(text)
        ok(putty(srv, "psftp", "-b", tmp_path / "batch", f"{box}@127.0.0.1"))

    there_and_back(
        srv, box, tmp_path,
        lambda local, name: batch(f"put {local} {name}\nls\n"),
        lambda name, local: batch(f"mkdir d\nmv {name} d/x\n"
                                  f"get d/x {local}\n"))


@pytest.mark.parametrize("way", ["-sftp", "-scp"])
def test_pscp(srv, box, tmp_path, way):
    """Over the subsystem and over a command."""
    there_and_back(
        srv, box, tmp_path,
        lambda local, name: ok(putty(
            srv, "pscp", "-q", way, local, at(box, name))),
        lambda name, local: ok(putty(
            srv, "pscp", "-q", way, at(box, name), local)))


def test_dropbear_as_transport(srv, box, tmp_path):
    """sftp over dbclient's subsystem, scp -O with it in ssh's place."""
    args = [str(a) for a in dbclient(srv, box)]
    transport = " ".join([*args[:-1], "-s", args[-1], "sftp"])
    there_and_back(
        srv, box, tmp_path,
        lambda local, name: ok(
            ["sftp", "-q", "-b", "-", "-D", transport],
            input=f"put {local} {name}\n".encode()),
        lambda name, local: ok(
            ["sftp", "-q", "-b", "-", "-D", transport],
            input=f"get {name} {local}\n".encode()))
    wrapper = tmp_path / "dbwrap"
    wrapper.write_text(
        "#!/bin/sh\n# scp puts options of OpenSSH in front of `-- HOST`\n"
        'while [ "$1" != -- ]; do shift; done; shift 2\n'
        f'exec {" ".join(args)} "$@"\n')
    wrapper.chmod(0o755)
    ok(["scp", "-O", "-q", "-S", wrapper, tmp_path / "f", at(box, "h")])
    assert srv.out(box, "cmp f h; echo $?") == "0\n"


def count_data(sftp):
    """Bytes of every DATA that comes from now on: where answers overtake its
    prefetching requests paramiko asks for the same once more.
    """
    got, read_packet = [], sftp._read_packet

    def read():
        kind, data = read_packet()
        if kind == paramiko.sftp.CMD_DATA:
            got.append(len(data) - 8)  # behind the ids of request and string
        return kind, data

    sftp._read_packet = read
    return got


def test_paramiko_sftp(srv, box, tmp_path):
    """Its prefetching get, its pipelined put, its file objects."""
    t = raw.transport(srv)
    assert raw.login(t, box, srv.key) == []
    sftp = paramiko.SFTPClient.from_transport(t)
    got = count_data(sftp)
    there_and_back(
        srv, box, tmp_path,
        lambda local, name: sftp.put(str(local), name),
        lambda name, local: sftp.get(name, str(local)))
    sftp.mkdir("d")
    with sftp.open("d/x", "w") as f:
        f.write("hello")
    sftp.chmod("d/x", 0o600)
    assert stat.S_IMODE(sftp.stat("d/x").st_mode) == 0o600
    assert sftp.listdir(".") and sftp.listdir("d") == ["x"]
    with pytest.raises(OSError):
        sftp.stat("nothing")
    # An end without an EOF: CLOSE at once.
    sftp.close()
    t.close()
    rows = transfers(srv, box)
    assert sum(got) >= 3 * MEG + 1
    assert [(r["direction"], r["bytes"], r["status"]) for r in rows] == [
        ("in", 3 * MEG + 1, "done"), ("out", sum(got), "done"),
        ("in", 5, "done")]


def test_asyncssh_sftp(srv, box, tmp_path):
    """Many requests in flight, many files at once. (It does not keep quiet
    while keys are changed, which libssh punishes: README, Limits.)
    """

    async def talk(do):
        async with asyncssh.connect(
            "127.0.0.1", srv.port, username=box, known_hosts=None,
            client_keys=[str(srv.key)], config=None, agent_path=None,
        ) as conn, conn.start_sftp_client() as sftp:
            await do(sftp)

    def act(do):
        asyncio.run(asyncio.wait_for(talk(do), 90))

    there_and_back(
        srv, box, tmp_path,
        lambda local, name: act(lambda c: c.put(str(local), name)),
        lambda name, local: act(lambda c: c.get(name, str(local))),
        12 * MEG)

    async def many(sftp):
        await sftp.mkdir("d")

        async def one(i):
            async with sftp.open(f"d/{i}", "wb") as f:
                await f.write(str(i).encode() * 1000)
            async with sftp.open(f"d/{i}", "rb") as f:
                assert await f.read() == str(i).encode() * 1000

        await asyncio.gather(*(one(i) for i in range(40)))
        vfs = await sftp.statvfs(".")
        assert vfs.bsize > 0 and vfs.frsize > 0

    act(many)
    assert srv.out(box, "ls d | wc -l") == "40\n"


def test_rsync(srv, box, tmp_path):
    """A tree there and back, a change, a deletion, links and times."""
    tree = tmp_path / "tree"
    (tree / "sub dir").mkdir(parents=True)
    noise(tree / "big", 2 * MEG)
    noise(tree / "sub dir" / "ä b", 1000)
    os.symlink("big", tree / "link")
    os.utime(tree / "big", (10**9, 10**9))
    rsh = ssh_command(srv)

    def both():
        ok(["rsync", "-a", "--delete", "-e", rsh, f"{tree}/",
            at(box, "tree/")])
        ok(["rsync", "-a", "--delete", "-e", rsh, at(box, "tree/"),
            f"{tmp_path}/back/"])
        done = run(["diff", "-r", "--no-dereference", tree,
                    tmp_path / "back"])
        assert done.returncode == 0, done.stdout

    both()
    assert (tmp_path / "back" / "big").stat().st_mtime == 10**9
    with open(tree / "big", "r+b") as f:
        f.seek(MEG)
        f.write(b"changed")
    (tree / "link").unlink()
    both()
    # A failure is the client's to hear.
    done = run(["rsync", "-a", "-e", rsh, at(box, "nothing/"), tmp_path])
    assert done.returncode == 23


def test_git_push_and_clone(srv, box, tmp_path):
    """Pack protocol in both directions."""
    env = {
        **os.environ, "GIT_SSH_COMMAND": ssh_command(srv),
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    srv.out(box, "git init -q --bare r.git")
    url = f"ssh://{box}@127.0.0.1:{srv.port}{workspace(srv, box)}/r.git"
    ok(["git", "init", "-q", "-b", "main", tmp_path / "a"], env=env)
    noise(tmp_path / "a" / "big", 2 * MEG)
    for args in (["add", "."], ["commit", "-q", "-m", "x"],
                 ["push", "-q", url, "main"]):
        ok(["git", "-C", tmp_path / "a", *args], env=env)
    ok(["git", "clone", "-q", "-b", "main", url, tmp_path / "b"], env=env)
    assert sha(tmp_path / "b" / "big") == sha(tmp_path / "a" / "big")


def test_lftp(srv, box, tmp_path):
    """mirror in both directions, several files at once."""
    tree = tmp_path / "tree"
    tree.mkdir()
    for i in range(12):
        noise(tree / f"f{i}", 50_000)
    connect = " ".join(["ssh", "-a", "-x", *options(srv)])

    def lftp(commands):
        ok(["lftp", "-c",
            f"set sftp:connect-program '{connect}'; set net:max-retries 1;"
            f" open -u {box},x sftp://127.0.0.1:{srv.port}; {commands}"])

    lftp(f"mirror -R -P 3 {tree} tree")
    lftp(f"mirror -P 3 tree {tmp_path}/back")
    assert run(["diff", "-r", tree, tmp_path / "back"]).returncode == 0


def can_mount():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError:
        return False
    return True


@pytest.mark.skipif(
    not can_mount(), reason="explained: /dev/fuse cannot be opened here")
def test_sshfs(srv, box, tmp_path):
    """A mount: files, directories, renames, statvfs."""
    mount = tmp_path / "mount"
    mount.mkdir()
    opts = options(srv)
    child = subprocess.Popen(
        ["sshfs", "-f", at(box), mount, "-o", f"ssh_command=ssh {' '.join(opts)}"],
        stdin=subprocess.DEVNULL)
    try:
        wait_for(mount.is_mount, 20, "mounted")
        there_and_back(
            srv, box, tmp_path,
            lambda local, name: shutil.copyfile(local, mount / name),
            lambda name, local: shutil.copyfile(mount / name, local))
        (mount / "d").mkdir()
        (mount / "f").rename(mount / "d" / "f")
        assert os.listdir(mount / "d") == ["f"]
        assert os.statvfs(mount).f_bsize > 0
    finally:
        run(["fusermount", "-u", mount])
        end(child)


# ---- patterns --------------------------------------------------------------


def test_control_master_carries_them_all(srv, box, tmp_path):
    """sftp, scp, rsync and commands as channels of one connection."""
    mux = ["-o", f"ControlPath={tmp_path}/mux"]
    master = srv.spawn(box, None, ["-M", "-N", *mux])
    wait_for((tmp_path / "mux").exists, 20, "the master")
    want = noise(tmp_path / "f", MEG)
    for _ in range(3):
        for args in ([tmp_path / "f", at(box, "g")],
                     [at(box, "g"), tmp_path / "h"]):
            done = scp(srv, *args, opts=mux)
            assert (done.returncode, done.stderr) == (0, b"")
        assert sha(tmp_path / "h") == want
    ok(["rsync", "-a", "-e", ssh_command(srv, *mux), tmp_path / "f",
        at(box, "i")])
    assert srv.ssh(box, "cmp g i; exit 7", mux).returncode == 7
    logins = srv.sql("SELECT count(*) AS n FROM audit WHERE event = 'login'"
                     f" AND sandbox = '{box}'")
    assert logins[0]["n"] == 1
    end(master)


@pytest.mark.parametrize("transfer", ["smart", "scp", "piped"])
@pytest.mark.parametrize("pipelining", [False, True])
def test_ansible(srv, box, tmp_path, transfer, pipelining):
    """Its connection plugin: ControlPersist, -tt, sftp, pipelining."""
    book = tmp_path / "book.yml"
    book.write_text(textwrap.dedent(f"""\
        - hosts: all
          gather_facts: false
          tasks:
            - ping:
            - copy: {{content: "of ansible", dest: "{{{{ where }}}}/c"}}
            - command: cat c
              args: {{chdir: "{{{{ where }}}}"}}
              register: out
            - fail:
              when: out.stdout != "of ansible"
            - fetch: {{src: "{{{{ where }}}}/c", dest: "{tmp_path}/got",
                flat: true}}
        """))
    (tmp_path / "hosts").write_text(
        f"h ansible_host=127.0.0.1 ansible_port={srv.port}"
        f" ansible_user={box} where={workspace(srv, box)}"
        " ansible_python_interpreter=/usr/bin/python3\n")
    env = {
        **os.environ, "ANSIBLE_HOME": str(tmp_path / "ah"),
        "ANSIBLE_LOCAL_TEMP": str(tmp_path / "lt"), "LC_ALL": "C.UTF-8",
        "ANSIBLE_SSH_PIPELINING": str(pipelining),
        "ANSIBLE_SSH_TRANSFER_METHOD": transfer,
        # Its quoting is for a remote shell, as with any server of today.
        "ANSIBLE_SCP_EXTRA_ARGS": "-O",
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(tmp_path / "cp"),
        "ANSIBLE_SSH_ARGS": " ".join([
            "-o ControlMaster=auto -o ControlPersist=5s",
            *options(srv)[0:2], "-i", str(srv.key),
            "-o IdentitiesOnly=yes -o BatchMode=yes",
            f"-o UserKnownHostsFile={srv.known_hosts}"]),
    }
    ok(["ansible-playbook", "-i", tmp_path / "hosts", book], 110, env=env)
    assert (tmp_path / "got").read_text() == "of ansible"
    # Its master outlives it for a while; it is not ours to leave behind.
    for path in (tmp_path / "cp").iterdir():
        run(["ssh", "-O", "exit", "-o", f"ControlPath={path}", "x"])


def test_vs_code_bootstrap(srv, box):
    """`ssh -T HOST sh` gets a script on stdin, answers between markers while
    stdin stays open, leaves a server behind that outlives the script, and the
    shell goes when stdin closes.
    """
    child = srv.spawn(box, "sh", ["-T"], stdin=subprocess.PIPE)
    child.stdin.write(textwrap.dedent("""\
        echo "ab12: running"
        uname -sm; echo "HOME=$HOME"
        mkdir -p ~/.vscode-server/bin/c0ffee
        cat >~/.vscode-server/bin/c0ffee/server <<'END'
        #!/bin/sh
        echo "listening on 4711"
        exec sleep 7780
        END
        chmod +x ~/.vscode-server/bin/c0ffee/server
        nohup setsid ~/.vscode-server/bin/c0ffee/server \
            >~/.vscode-server/log 2>&1 </dev/null &
        until grep -q listening ~/.vscode-server/log; do sleep .1; done
        echo "ab12: start"; cat ~/.vscode-server/log; echo "ab12: end"
        """).encode())
    child.stdin.flush()
    text = b""
    while b"ab12: end\n" not in text:
        text += os.read(child.stdout.fileno(), 65536)
    assert b"ab12: start\nlistening on 4711\nab12: end\n" in text
    child.stdin.write(b"exit 3\n")
    child.stdin.close()
    assert child.wait(30) == 3
    assert srv.out(box, "pgrep -f '^sleep 7780' | wc -l") == "1\n"
    srv.out(box, "pkill -f '^sleep 7780'")


def test_jetbrains_bootstrap(srv, box, tmp_path):
    """Many channels of one connection: probes whose codes count, an upload by
    sftp, tar, a worker in the background whose first line is read from a file.
    """
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        worker = b"#!/bin/sh\necho ready-$1\nexec sleep 7781\n"
        info = tarfile.TarInfo("ide/worker.sh")
        info.size, info.mode = len(worker), 0o755
        tar.addfile(info, io.BytesIO(worker))

    async def talk():
        async with asyncssh.connect(
            "127.0.0.1", srv.port, username=box, known_hosts=None,
            client_keys=[str(srv.key)], config=None, agent_path=None,
        ) as conn:
            for command, code in (("uname -sm", 0), ("test -d ide", 1),
                                  ("nosuch_zz", 127), ("sh -lc 'exit 6'", 6)):
                assert (await conn.run(command)).exit_status == code
            async with conn.start_sftp_client() as sftp:
                async with sftp.open("ide.tar.gz", "wb") as f:
                    await f.write(archive.getvalue())
                assert await sftp.realpath(".") == str(workspace(srv, box))
            assert (await conn.run("tar xzf ide.tar.gz")).exit_status == 0
            done = await conn.run(
                "(setsid ./ide/worker.sh 42 </dev/null >out 2>&1 &);"
                " until test -s out; do sleep .1; done; cat out")
            assert (done.exit_status, done.stdout) == (0, "ready-42\n")
            done = await conn.run("tty", term_type="xterm")
            assert done.exit_status == 0
            done = await conn.run("pkill -f '^sleep 7781'")
            assert done.exit_status == 0

    asyncio.run(asyncio.wait_for(talk(), 90))
    assert (workspace(srv, box) / "ide").is_dir()
