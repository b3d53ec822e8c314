#!/usr/bin/python3 -IS
"""An engine for tests, which plays docker with processes of this machine. Its
state is the directory $FAKE_ENGINE: sandboxes/NAME holds a state, argv.log all
calls, one JSON list a line, and a file named after an operation makes it
behave badly: "fail TEXT", "hang", "slow TEXT" (tells it, and works on a
moment) or "die" (ended by a signal half-way).

As with docker, a process of the sandbox is not the client's child and lives on
when its client is killed: `fake_engine.py daemon` starts it, on pipes or on a
terminal, which the client copies from and to over a socket.
"""

import os
import sys

if sys.argv[1:2] == ["status"] and not os.path.exists(
        os.environ["FAKE_ENGINE"] + "/status"):
    # Asked all the time, so without all that follows.
    try:
        with open(f"{os.environ['FAKE_ENGINE']}/sandboxes/{sys.argv[2]}",
                  encoding="ascii") as f:
            print(f.read(), f"address-of-{sys.argv[2]}")
    except FileNotFoundError:
        pass
    sys.exit(0)

# pylint: disable=wrong-import-position
import fcntl  # noqa: E402
import json  # noqa: E402
import pathlib  # noqa: E402
import pty  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import struct  # noqa: E402
import termios  # noqa: E402
import time  # noqa: E402
import tty  # noqa: E402

STATE = pathlib.Path(os.environ["FAKE_ENGINE"])
BOXES = STATE / "sandboxes"
ENDED = 222


def misbehave(operation):
    try:
        words = (STATE / operation).read_text().split(None, 1)
    except FileNotFoundError:
        return
    if words[0] == "hang":
        time.sleep(3600)
    elif words[0] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif words[0] == "slow":
        print(words[1].strip(), file=sys.stderr, flush=True)
        time.sleep(0.2)
    elif words[0] == "fail":
        sys.exit("noise\n" + words[1].strip())


def write(path, text):
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.write_text(text)
    new.rename(path)


def processes(name):
    """All that runs in a sandbox, by its mark in their environment."""
    mark = f"\0FAKE_BOX={name}\0".encode()
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if mark in b"\0" + (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except (OSError, ValueError):
            pass
    return [pid for pid in found if pid != os.getpid()]


def end_all(name):
    while left := processes(name):
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def create(name, *rest):
    BOXES.mkdir(exist_ok=True)
    if (BOXES / name).exists():
        sys.exit(f"the name {name} is in use")
    write(BOXES / name, "created")
    misbehave("create-half")
    write(BOXES / name, "running")
    if "--read" in rest:
        write(STATE / "input", sys.stdin.read())
    print("0123456789abcdef")


def start(name):
    if not (BOXES / name).exists():
        sys.exit(f"no such sandbox: {name}")
    write(BOXES / name, "running")


def stop(name):
    if not (BOXES / name).exists():
        sys.exit(f"no such sandbox: {name}")
    end_all(name)
    write(BOXES / name, "exited")


def remove(name):
    if not (BOXES / name).exists():
        sys.exit(f"no such sandbox: {name}")
    end_all(name)
    (BOXES / name).unlink()


def change(name, state):
    if not (BOXES / name).exists():
        sys.exit(f"no such sandbox: {name}")
    write(BOXES / name, state)


# ---- exec ------------------------------------------------------------------


def serve(sock, name, argv, is_tty):
    """The engine's side: starts the process, copies, tells its exit code."""
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "FAKE_BOX": name,
           "IMAGE": "yes"}
    if is_tty:
        pid, master = pty.fork()
        if pid == 0:
            os.execvpe(argv[0], argv, env)
        pipes = {1: master}
        stdin = master
    else:
        ends = [os.pipe() for _ in range(3)]
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.dup2(ends[0][0], 0)
            os.dup2(ends[1][1], 1)
            os.dup2(ends[2][1], 2)
            os.closerange(3, 100)
            try:
                os.execvpe(argv[0], argv, env)
            except OSError as e:
                os.write(2, f"{argv[0]}: {e}\n".encode())
                os._exit(127)
        for end in (ends[0][0], ends[1][1], ends[2][1]):
            os.close(end)
        stdin = ends[0][1]
        pipes = {1: ends[1][0], 2: ends[2][0]}
    serve_loop(sock, pid, pipes, stdin, is_tty)


def send(sock, kind, data=b""):
    try:
        sock.sendall(struct.pack("!BI", kind, len(data)) + data)
    except OSError:
        pass


def receive(sock):
    head = b""
    while len(head) < 5:
        more = sock.recv(5 - len(head))
        if not more:
            return None, b""
        head += more
    kind, n = struct.unpack("!BI", head)
    data = b""
    while len(data) < n:
        more = sock.recv(n - len(data))
        if not more:
            return None, b""
        data += more
    return kind, data


def serve_loop(sock, pid, pipes, stdin, is_tty):
    is_heard = True
    code = None
    while pipes or code is None:
        fds = list(pipes.values()) + ([sock] if is_heard else [])
        ready, _, _ = select.select(fds, [], [], 0.02)
        for kind, fd in list(pipes.items()):
            if fd not in ready:
                continue
            try:
                data = os.read(fd, 65536)
            except OSError:
                data = b""
            if data:
                send(sock, kind, data)
            else:
                del pipes[kind]
        if sock in ready:
            kind, data = receive(sock)
            if kind is None:
                # The client is gone, and the process knows nothing of it.
                is_heard = False
            elif kind == 0 and data:
                try:
                    os.write(stdin, data)
                except OSError:
                    pass
            elif kind == 0 and not is_tty:
                os.close(stdin)
            elif kind == 3:
                fcntl.ioctl(stdin, termios.TIOCSWINSZ, data)
        if code is None:
            done, value = os.waitpid(pid, os.WNOHANG)
            if done:
                code = value
                if is_tty and not ready:
                    break
    if os.WIFSIGNALED(code):
        code = 128 + os.WTERMSIG(code)
    else:
        code = os.WEXITSTATUS(code)
    send(sock, ENDED, bytes([code]))
    os._exit(0)


def execute(name, argv, is_tty):
    state = (BOXES / name).read_text() if (BOXES / name).exists() else "gone"
    if state != "running":
        sys.exit(f"sandbox {name} is {state}")
    ours = socket.socket(socket.AF_UNIX)
    ours.connect(str(STATE / "engine.sock"))
    send(ours, 9, json.dumps([name, argv, is_tty]).encode())
    if is_tty:
        if not os.isatty(0):
            sys.exit("the input device is not a TTY")
        tty.setraw(0, termios.TCSANOW)

    def resize(*_):
        size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
        send(ours, 3, size)

    if is_tty:
        signal.signal(signal.SIGWINCH, resize)
        resize()
    return client_loop(ours)


def client_loop(sock):
    fds = [sock, 0]
    while True:
        ready, _, _ = select.select(fds, [], [])
        if 0 in ready:
            try:
                data = os.read(0, 65536)
            except OSError:
                data = b""
            send(sock, 0, data)
            if not data:
                fds.remove(0)
        if sock in ready:
            kind, data = receive(sock)
            if kind is None:
                sys.exit("the engine is gone")
            if kind == ENDED:
                return data[0]
            while data:
                data = data[os.write(kind, data):]


def daemon():
    """Until it is killed: a process of its own for each exec."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(STATE / "engine.sock"))
    server.listen(100)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        sock, _ = server.accept()
        if os.fork() == 0:
            server.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            serve(sock, *json.loads(receive(sock)[1]))
        sock.close()


def logs(*args):
    """What it was asked for, as a terminal would like it, and on and on."""
    print("\033[31mlog\033[m", *args, flush=True)
    print("second", file=sys.stderr, flush=True)
    while "--follow=true" in args:
        print("tick", flush=True)
        time.sleep(0.2)
    return 3 if "--tail=3" in args else 0


def main():
    if sys.argv[1] == "daemon":
        return daemon()
    with open(STATE / "argv.log", "a", encoding="utf-8") as log:
        log.write(json.dumps(sys.argv[1:]) + "\n")
    operation, args = sys.argv[1], sys.argv[2:]
    misbehave(operation)
    table = {"create": create, "start": start, "stop": stop, "rm": remove,
             "pause": lambda name: change(name, "paused"),
             "unpause": lambda name: change(name, "running")}
    if operation == "status":
        return 0
    if operation in table:
        return table[operation](*args)
    if operation == "logs":
        return logs(*args)
    if operation in ("exec", "exec-tty", "kill"):
        return execute(args[0], args[1:], operation == "exec-tty")
    sys.exit(f"unknown operation {operation}")


if __name__ == "__main__":
    sys.exit(main())
