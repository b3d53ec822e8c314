"""A relay that hands everything on a little later, for `make bench`: a long
line without a long line. Prints its port; ends when its stdin ends.

Usage: relay.py PORT MILLISECONDS   (each way)
"""

import collections
import selectors
import socket
import sys
import time

CHUNK = 256 << 10


class Pipe:
    """One direction: bytes and when each of them may go."""

    def __init__(self, source, target):
        self.source, self.target = source, target
        self.queue = collections.deque()  # (due, bytes), b"" is the end
        self.is_over = False

    def read(self, delay_s):
        """False when nothing more will come."""
        try:
            data = self.source.recv(CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            data = b""
        self.queue.append((time.monotonic() + delay_s, data))
        return bool(data)

    def write(self):
        """What is due, as far as the target takes it; seconds to the next."""
        while self.queue:
            due, data = self.queue[0]
            wait = due - time.monotonic()
            if wait > 0:
                return wait
            try:
                if data:
                    n = self.target.send(data)
                else:
                    self.is_over = True
                    self.target.shutdown(socket.SHUT_WR)
                    n = 0
            except BlockingIOError:
                return 0.001
            except OSError:
                self.is_over = True
                self.queue.clear()
                return None
            self.queue.popleft()
            if n < len(data):
                self.queue.appendleft((due, data[n:]))
        return None


def main(port, delay_s):
    listener = socket.create_server(("127.0.0.1", 0))
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ, None)
    selector.register(sys.stdin.buffer, selectors.EVENT_READ, "stdin")
    print(listener.getsockname()[1], flush=True)
    pipes = []
    while True:
        waits = [w for w in [p.write() for p in pipes] if w is not None]
        for p in [p for p in pipes if p.is_over and not p.queue]:
            pipes.remove(p)
        for key, _ in selector.select(min(waits) if waits else 1):
            if key.data == "stdin":
                return
            if key.data is None:
                near, _ = listener.accept()
                far = socket.create_connection(("127.0.0.1", port))
                for source, target in ((near, far), (far, near)):
                    source.setblocking(False)
                    source.setsockopt(
                        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    pipe = Pipe(source, target)
                    pipes.append(pipe)
                    selector.register(source, selectors.EVENT_READ, pipe)
            elif not key.data.read(delay_s):
                selector.unregister(key.data.source)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) / 1000)
