"""Speaks frames to a real berth-session over socket pairs, as the manager and
as its viewers do. Every wait has a deadline.
"""

import os
import pathlib
import queue
import signal
import socket
import struct
import subprocess
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(
    os.environ.get("BERTH_BUILD", ROOT / "build" / "asan")
).resolve()
DEADLINE = 30.0

# sessions/wire/frame.h
(DATA, CREDIT, EOF, RESIZE, SIGNAL, BREAK, DETACH, EXIT, END) = range(0x10, 0x19)
BORROW, PIPE, BORROWED = range(0x19, 0x1C)
(LAUNCH, VIEWER, KILL, STOP, DROP, INPUT, INPUT_EOF, SET_SIZE, FLUSH, BYE,
 TAKE, SCREEN, WHO) = range(0x40, 0x4D)
(HELLO, STARTED, FAILED, VIEWER_ACK, VIEWER_GONE, INDEX, STATS, EXITED,
 VIEWERS, TEXT, VIEWER_STATS) = range(0x60, 0x6B)
OK, ERROR = 0xE0, 0xE1
IN, OUT, ERR = range(3)
HAS_FD = 1 << 31
VERSION = 2
WINDOW = 256 << 10
DATA_MAX = 64 << 10

# sessions/wire/messages.h
PTY, BOUND, LOGIN, RECORD, REC_STOP, SETUID = (1 << n for n in range(6))
MAY_TYPE, REPLAY, FOLLOW, RAW_TAIL, TERMINAL, RAW = (1 << n for n in range(6))
REPLAY_SCREEN, REPLAY_RAW, REPLAY_NONE = range(3)
LATEST, SMALLEST, LARGEST, FIRST, FIXED = range(5)

ENV = ["PATH=/usr/bin:/bin", "TERM=xterm", "SHELL=/bin/sh", "LC_ALL=C.UTF-8"]


def _str(s):
    s = s.encode() if isinstance(s, str) else s
    return struct.pack(">I", len(s)) + s


def _strv(v):
    return struct.pack(">I", len(v)) + b"".join(_str(s) for s in v)


class Link:
    """One end of a link; send() from any thread, recv() from one."""

    def __init__(self, sock):
        self.sock = sock
        self.lock = threading.Lock()
        self.buf = b""
        self.fds = []

    def send(self, kind, arg=0, tag=0, payload=b"", fd=None):
        n = len(payload) | (HAS_FD if fd is not None else 0)
        frame = struct.pack(">IBBH", n, kind, arg, tag) + payload
        with self.lock:
            if fd is not None:
                sent = socket.send_fds(self.sock, [frame], [fd])
                frame = frame[sent:]
            self.sock.sendall(frame)

    def _need(self, n):
        while len(self.buf) < n:
            got, fds, _, _ = socket.recv_fds(self.sock, 65536, 4)
            self.fds += fds
            if not got:
                raise EOFError
            self.buf += got

    def recv(self):
        """(type, arg, tag, payload); EOFError at the end."""
        self._need(8)
        n, kind, arg, tag = struct.unpack(">IBBH", self.buf[:8])
        n &= ~HAS_FD
        self._need(8 + n)
        payload, self.buf = self.buf[8 : 8 + n], self.buf[8 + n :]
        return kind, arg, tag, payload


class Viewer(threading.Thread):
    """A viewer that reads all the time unless it is told to be slow."""

    def __init__(self, sock, credit=WINDOW):
        super().__init__(daemon=True)
        self.link = Link(sock)
        self.out = {OUT: bytearray(), ERR: bytearray()}
        self.cond = threading.Condition()
        self.window = 0
        self.largest = 0  # payload of DATA
        self.credit = credit
        self.exit = None
        self.pipe = None  # descriptor of a pipe that the keeper lent
        self.detached = None
        self.is_ended = False
        self.is_closed = False
        self.reading = threading.Event()
        self.reading.set()
        for stream in (OUT, ERR):
            if credit:
                self.grant(credit, stream)
        self.start()

    def grant(self, n, stream=OUT):
        try:
            self.link.send(CREDIT, stream, 0, struct.pack(">I", n))
        except BrokenPipeError:
            pass  # a keeper that ended closes a late viewer's link at once

    def run(self):
        try:
            while True:
                self.reading.wait()
                self._handle(*self.link.recv())
        except (EOFError, OSError):
            pass
        with self.cond:
            self.is_closed = True
            self.cond.notify_all()

    def _handle(self, kind, arg, tag, payload):
        del tag
        with self.cond:
            if kind == DATA:
                self.out[arg] += payload
                self.largest = max(self.largest, len(payload))
            elif kind == CREDIT:
                self.window += struct.unpack(">I", payload)[0]
            elif kind == EXIT:
                sig, core, value, n = struct.unpack(">BBII", payload[:10])
                self.exit = (sig, value, payload[10 : 10 + n].decode())
                self.exit_at = len(self.out[OUT])
            elif kind == PIPE:
                self.pipe = self.link.fds.pop(0)
            elif kind == END:
                self.is_ended = True
            elif kind == DETACH:
                self.detached = payload[4:].decode()
            self.cond.notify_all()
        if kind == DATA and self.credit:
            try:
                self.grant(len(payload), arg)
            except OSError:
                pass

    def wait(self, predicate, deadline=DEADLINE, what=""):
        with self.cond:
            if not self.cond.wait_for(predicate, deadline):
                tail = bytes(self.out[OUT][-300:])
                raise AssertionError(f"not within {deadline} s: {what} {tail!r}")

    def wait_for(self, text, deadline=DEADLINE):
        text = text.encode() if isinstance(text, str) else text
        self.wait(lambda: text in self.out[OUT], deadline, text)

    def wait_end(self, deadline=DEADLINE):
        self.wait(lambda: self.is_ended, deadline, "END")
        return self.exit

    def type(self, data, deadline=DEADLINE):
        """Sends DATA within the window, as one frame where it fits."""
        data = data.encode() if isinstance(data, str) else data
        while data:
            self.wait(lambda: self.window > 0, deadline, "credit")
            with self.cond:
                n = min(len(data), self.window, DATA_MAX)
                self.window -= n
            self.link.send(DATA, IN, 0, data[:n])
            data = data[n:]

    def eof(self):
        self.link.send(EOF, IN)

    def resize(self, cols, rows):
        self.link.send(RESIZE, 0, 0, struct.pack(">IIII", cols, rows, 0, 0))

    def signal(self, number):
        self.link.send(SIGNAL, number)

    def take(self):
        """Asks for the pipe of stdout and waits for it."""
        self.link.send(BORROW, OUT)
        self.wait(lambda: self.pipe is not None, what="a pipe")
        os.set_blocking(self.pipe, True)
        return self.pipe

    def taken(self, n):
        self.link.send(BORROWED, OUT, 0, struct.pack(">I", n))

    def give_back(self):
        self.link.send(EOF, OUT)
        os.close(self.pipe)
        self.pipe = None

    def brk(self):
        self.link.send(BREAK, 0, 0, struct.pack(">I", 500))

    def close(self):
        try:
            self.link.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.reading.set()
        self.join(5)
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
        self.link.sock.close()


class Keeper(threading.Thread):
    """A berth-session with this process as its manager."""

    def __init__(self, tmp, argv=("/bin/sh",), flags=PTY, **launch):
        super().__init__(daemon=True)
        self.tmp = pathlib.Path(tmp)
        ours, theirs = socket.socketpair()
        self.log = open(self.tmp / "keeper.log", "ab+")
        self.listener = socket.socket(socket.AF_UNIX)
        self.path = str(self.tmp / "k.sock")
        if os.path.exists(self.path):
            os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen()
        lock = os.open(self.tmp / "lock", os.O_CREAT | os.O_RDWR)
        wanted = [theirs.fileno(), lock, self.listener.fileno()]

        def arrange():
            high = [os.dup(fd) for fd in wanted]
            high = [fcntl_dupfd(fd, 100) for fd in high]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.closerange(6, 1024)

        self.proc = subprocess.Popen(
            [BUILD / "berth-session"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.log,
            close_fds=False,
            preexec_fn=arrange,
        )
        theirs.close()
        os.close(lock)
        self.link = Link(ours)
        self.frames = []
        self.cond = threading.Condition()
        self.viewers = []
        self.tag = 0
        self.auto_bye = True
        self.is_gone = False
        self.start()
        if argv is not None:
            self.launch(argv, flags, **launch)

    def launch(self, argv, flags=PTY, path=None, env=(), cwd="/", uid=0, gid=0,
               user="", cols=80, rows=24, buffer=1 << 20, grace=1000,
               policy=LATEST, recording=None, replay=REPLAY_SCREEN,
               scrollback=10000, scrollback_bytes=8 << 20, detach_key=(),
               answer=("berth", 0xD0D0D0, 0, 0xD0D0D0), term="xterm"):
        self.flags = flags
        payload = b"".join((
            struct.pack(">I", VERSION), _str("ses-0123456789abcdef"),
            _str("box+test"),
            struct.pack(">QI", 1, flags | (RECORD if recording is not None else 0)),
            _str(path or argv[0]), _strv(argv), _strv(ENV + list(env)),
            _str(cwd), struct.pack(">II", uid, gid), _str(user),
            struct.pack(">IIII", cols, rows, 0, 0),
            struct.pack(">QIIQQII", buffer, grace, 1000, 0, 0, 10000, policy),
            struct.pack(">IIQ", replay, scrollback, scrollback_bytes),
            struct.pack(">B", len(detach_key)),
            *(struct.pack(">IB", ord(ch), ctrl) for ch, ctrl in detach_key),
            _str(answer[0]), struct.pack(">III", *answer[1:]), _str(term),
        ))
        self.link.send(LAUNCH, 0, 0, payload, recording)

    def run(self):
        link = self.link
        try:
            while True:
                frame = link.recv()
                if frame[0] == EXITED and self.auto_bye:
                    link.send(BYE)
                with self.cond:
                    self.frames.append(frame)
                    self.cond.notify_all()
        except (EOFError, OSError):
            pass
        with self.cond:
            self.is_gone = True
            self.cond.notify_all()

    def wait(self, kind, deadline=DEADLINE, tag=None):
        """The first frame of KIND (and TAG) that came, or comes."""
        def find():
            for f in self.frames:
                if f[0] == kind and (tag is None or f[2] == tag):
                    return f
            return None

        with self.cond:
            if not self.cond.wait_for(find, deadline):
                raise AssertionError(f"no {kind:#x}, have {self.frames[-5:]}")
            return find()

    def started(self):
        return struct.unpack(">IQQ", self.wait(STARTED)[3])[0]

    def attach(self, flags=MAY_TYPE | REPLAY | FOLLOW, cols=0, rows=0, tail=0,
               credit=WINDOW, label="", notice="", version=VERSION,
               identity="alice"):
        ours, theirs = socket.socketpair()
        self.tag += 1
        tag = self.tag
        payload = struct.pack(">QIIIIII", tag, flags, tail, cols, rows, 0, 0)
        payload += struct.pack(">I", version)
        payload += _str(label) + _str(notice) + _str(identity)
        self.link.send(VIEWER, 0, tag, payload, theirs.fileno())
        theirs.close()
        viewer = Viewer(ours, credit)
        viewer.attachment = tag
        self.viewers.append(viewer)
        ack = self.wait(VIEWER_ACK, tag=tag)
        viewer.is_attached = ack[1] == 1
        return viewer

    def ask(self, kind, arg=0, payload=b"", deadline=DEADLINE):
        """Sends a request; True for OK."""
        self.tag += 1
        tag = self.tag
        self.link.send(kind, arg, tag, payload)
        with self.cond:
            assert self.cond.wait_for(
                lambda: any(f[0] in (OK, ERROR) and f[2] == tag
                            for f in self.frames), deadline)
            return any(f[0] == OK and f[2] == tag for f in self.frames)

    def stop(self, grace=1000):
        self.link.send(STOP, 0, 0, struct.pack(">I", grace))

    def exited(self, deadline=DEADLINE):
        """(is_signal, value, note) of FRAME_EXITED."""
        p = self.wait(EXITED, deadline)[3]
        sig, core, value, n = struct.unpack(">BBII", p[:10])
        return sig, value, p[10 : 10 + n].decode()

    def connect(self):
        """A link of somebody who may become the next manager."""
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(DEADLINE)
        sock.connect(self.path)
        return Link(sock)

    def adopt(self, generation=2, version=VERSION):
        """Becomes the keeper's next manager; False if it does not want to."""
        link = self.connect()
        assert link.recv()[0] == HELLO
        link.send(TAKE, 0, 0, struct.pack(">IQ", version, generation))
        first = link.recv()
        if first[0] != HELLO:
            assert first[0] == ERROR
            link.sock.close()
            return False
        link.sock.settimeout(None)
        self.link = link
        self.frames = [first]
        self.is_gone = False
        threading.Thread(target=self.run, daemon=True).start()
        return True

    def state_file(self):
        return (self.tmp / "lock").read_bytes()

    def drop_manager(self):
        self.link.sock.shutdown(socket.SHUT_RDWR)
        with self.cond:
            self.cond.wait_for(lambda: self.is_gone, 5)
        self.link.sock.close()

    def wait_gone(self, deadline=DEADLINE):
        assert self.proc.wait(deadline) == 0

    def close(self):
        """Ends everything; what the keeper logged must be clean."""
        for viewer in self.viewers:
            viewer.close()
        try:
            if self.proc.poll() is None:
                try:
                    self.stop(0)
                except OSError:
                    pass
                try:
                    self.proc.wait(10)
                except subprocess.TimeoutExpired:
                    self.proc.send_signal(signal.SIGKILL)
                    self.proc.wait(5)
                    raise AssertionError("the keeper did not go")
        finally:
            self.listener.close()
            self.link.sock.close()
            self.log.seek(0)
            text = self.log.read()
            self.log.close()
        assert b"ERROR: " not in text and b"runtime error" not in text, text
        assert b"Assertion" not in text, text
        assert self.proc.returncode == 0, (self.proc.returncode, text)


def fcntl_dupfd(fd, least):
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD, least)


def wait_until(predicate, deadline=DEADLINE, what=""):
    end = time.monotonic() + deadline
    while not predicate():
        assert time.monotonic() < end, f"not within {deadline} s: {what}"
        time.sleep(0.02)


def is_alive(pid):
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rsplit(")", 1)[1].split()[0] not in "ZX"
