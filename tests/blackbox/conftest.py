"""Fixtures: `srv` is a running server that the tests of one module share,
`fresh` makes servers of a test's own. Both are checked for sanitizer reports
after every test and for leftovers at their end; the log of a failing test is
printed. Tests get names of their own sandboxes from `box`.
"""

import itertools
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from berth import BUILD, IS_ROOT, Server  # noqa: E402

_live = []
_counter = itertools.count()


def pytest_sessionstart(session):
    del session
    for name in ("berthd", "berth-sshd", "berth-session", "berth-sandbox", "berth-archive",
                 "berth"):
        if not (BUILD / name).exists():
            pytest.exit(f"{BUILD / name} is missing: build it first", 4)


def pytest_runtest_setup(item):
    del item
    for server in _live:
        server.mark = len(server.log())


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.when in ("call", "teardown") and report.failed:
        for server in _live:
            report.sections.append(
                (f"server log {server.dir}", server.log()[server.mark:][-8000:])
            )
    del item, call


def _open(**options):
    server = Server(start=False, **options)
    _live.append(server)
    return server


def _close(server):
    try:
        server.close()
    finally:
        _live.remove(server)


@pytest.fixture(scope="module")
def module_server(request):
    options = getattr(request.module, "SERVER", {})
    holder = {"server": None}

    def get():
        server = holder["server"]
        if server is not None and not server.is_running():
            holder["server"] = None
            try:
                _close(server)
            except AssertionError:
                pass  # reported by the test that ended it
        if holder["server"] is None:
            server = holder["server"] = _open(**options)
            server.start()
        return holder["server"]

    yield get
    if holder["server"] is not None:
        _close(holder["server"])


@pytest.fixture
def srv(module_server):
    """The module's server, running; the test fails if it does not survive."""
    server = module_server()
    yield server
    for client in server.clients:
        client.close()
    server.clients.clear()
    server.check_log()
    assert server.is_running(), "berthd did not survive this test"


@pytest.fixture
def fresh():
    """Call it with options for a server of the test's own."""
    mine = []

    def make(start=True, **options):
        server = _open(**options)
        mine.append(server)
        if start:
            server.start()
        return server

    yield make
    errors = []
    for server in mine:
        try:
            _close(server)
        except AssertionError as e:
            errors.append(str(e))
    assert not errors, "\n".join(errors)


@pytest.fixture
def box():
    """A sandbox name that no other test uses."""
    return f"b{os.getpid()}-{next(_counter)}"


@pytest.fixture
def as_root():
    if not IS_ROOT:
        pytest.skip("explained: needs two users, so it runs as root only")
