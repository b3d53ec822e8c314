"""Somebody who attaches in the middle of a stream sees and has what somebody
has who was there all along. For cut points of every recording of tests/corpus
the engine says (by cut.c) what a viewer is sent; a terminal with a past of its
own is fed with that and compared with the one that saw all, at once and a bit
later: cells, attributes, cursor, modes, history. Seeds are fixed.
"""

import os
import pathlib
import random
import struct
import subprocess
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CORPUS = HERE.parent / "corpus"
sys.path[:0] = [str(HERE.parent / "terminal"), str(CORPUS)]

import compare  # noqa: E402 - their folders had to be named first
import record  # noqa: E402
from grid import PROTECTED  # noqa: E402
from vt import Vt  # noqa: E402

BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", ROOT / "build" / "asan"))
CUT = BUILD / "cuts" / "cut"
CUTS = 200
IS_LONG = bool(os.environ.get("BERTH_CUTS_LONG"))  # CUTS of everything
LINES = 60  # of history: what more there is would only take time
LATER = 300  # bytes of live output after the attach


def cases():
    """(file, columns, rows): each recording at its size, the made-up ones at
    more."""
    found = []
    for path in sorted(CORPUS.glob("*.bin")):
        name, size = path.stem.rsplit("-", 1)
        sizes = record.MADE_UP_SIZES.get(
            name, [tuple(map(int, size.split("x")))])
        found += [(path, cols, rows) for cols, rows in sizes]
    return found


def case_id(case):
    path, cols, rows = case
    return f"{path.stem.rsplit('-', 1)[0]}-{cols}x{rows}"


def points(data, seed, cols, rows, part=1):
    """Cut points in rising order. In a hurry large screens, which cost more, have
    fewer, and what says less by each only one in PART."""
    n = CUTS
    if not IS_LONG:
        n = min(CUTS, max(12, CUTS * 4000 // (cols * rows)))
    pick = random.Random(seed)
    at = sorted(pick.sample(range(len(data) + 1), min(n, len(data))))
    return at if IS_LONG else at[::part]


def sections(path, cols, rows, picture, at):
    """Seven pieces of bytes for each cut: see cut.c."""
    done = subprocess.run(
        [CUT, *map(str, (cols, rows, LINES, *picture)), path],
        input="".join(f"{p}\n" for p in at).encode(), capture_output=True,
        timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    out, pos, pieces = done.stdout, 0, []
    while pos < len(out):
        (n,) = struct.unpack_from(">I", out, pos)
        pieces.append(out[pos + 4:pos + 4 + n])
        pos += 4 + n
    assert len(pieces) == 7 * len(at)
    return [pieces[i:i + 7] for i in range(0, len(pieces), 7)]


PAST = (
    b"$ shell of the viewer\r\nwith text \x1b[31mred",
    b"old\r\n" * 40 + b"\x1b[?1049h\x1b[5;9r\x1b[?6h\x1b[?1002h\x1b[?1006h",
    b"\x1b[>1u\x1b[>4;2m\x1b[4h\x1b[?7l\x1b[?25l\x1b(0\x1b]2;title\x07ab",
    b"\x1b[?69h\x1b[2;5s\x1b[44mx\x1b]4;3;#112233\x07\x1b]11;#000010\x07",
    b"\x1b[?2004h\x1b[?1004h\x1b=\x1b[?1h\x1b[3g\x1b[5 q\x1b]2;unfinished",
)


def newcomer(cols, rows, i):
    """A terminal that somebody has used for other things before."""
    vt = Vt(cols, rows, 100000)
    vt.feed(PAST[i % len(PAST)])
    return vt


def attach(vt, pieces):
    """Feeds what a viewer is sent; checks what never may be in it."""
    prologue, history, repaint, pending = pieces[:4]
    vt.feed(prologue)
    assert not vt.is_alt
    before = vt.n_scrolled
    n_queries, n_events = len(vt.queries), len(vt.events)
    vt.feed(history)
    shown = list(vt.history)[len(vt.history) - (vt.n_scrolled - before):]
    vt.feed(repaint)
    assert vt.n_scrolled - before == len(shown), "the repaint scrolls"
    assert vt.is_ground(), "the repaint ends within a sequence"
    assert vt.queries[n_queries:] == [], "a query out of the past"
    loud = [e for e in vt.events[n_events:] if e[0] != "flash"]
    assert loud == [], "an event out of the past"
    vt.feed(pending)
    return shown


def unprotected(row):
    """Nobody can erase in the history: DECSCA is of no use there."""
    row = row.copy()
    row.pen = [p._replace(flags=p.flags & ~PROTECTED) for p in row.pen]
    return row


def history_differences(shown, reference):
    expected = [unprotected(r) for r in list(reference.history)[-LINES:]]
    return compare.rows_differences("history", expected, shown)


@pytest.mark.parametrize("case", cases(), ids=case_id)
def test_an_attach_shows_what_was_there(case):
    """A5, A7, A8: at any byte, whatever the terminal was used for before."""
    path, cols, rows = case
    data = path.read_bytes()
    at = points(data, 7, cols, rows)
    cuts = sections(path, cols, rows, (cols, rows), at)
    reference, later, fed = Vt(cols, rows), [], 0

    def advance(to):
        nonlocal fed
        while later and later[0][0] <= to:
            point, start, vt = later.pop(0)
            reference.feed(data[fed:point])
            fed = point
            vt.feed(data[start:point])
            found = compare.differences(reference, vt)
            assert not found, f"cut {start}, later {point}\n" + report(found)
        reference.feed(data[fed:to])
        fed = to

    for i, (cut, pieces) in enumerate(zip(at, cuts)):
        advance(cut)
        vt = newcomer(cols, rows, i)
        shown = attach(vt, pieces)
        if not reference.last_is_fresh:
            vt.last = reference.last
        found = (compare.differences(reference, vt)
                 + history_differences(shown, reference))
        assert not found, f"cut {cut}\n" + report(found)
        point = min(cut + LATER, len(data))
        if not later or later[-1][0] <= point:
            later.append((point, cut, vt))
    advance(len(data))


@pytest.mark.parametrize("case", cases(), ids=case_id)
def test_a_detach_gives_a_clean_terminal_back(case):
    """A6: after what restores it nothing is on, and the text says `screen`."""
    path, cols, rows = case
    data = path.read_bytes()
    at = points(data, 8, cols, rows, 4)
    cuts = sections(path, cols, rows, (cols, rows), at)
    reference, fed = Vt(cols, rows), 0
    for cut, pieces in zip(at, cuts):
        reference.feed(data[fed:cut])
        fed = cut
        vt = Vt(cols, rows)
        vt.feed(pieces[0] + pieces[1] + pieces[2] + pieces[4])
        assert not vt.is_alt and vt.is_ground()
        found = compare.unclean(vt, Vt(cols, rows))
        assert not found, f"cut {cut}\n" + report(found)
        assert vt.col == 0 and not vt.buffer.rows[vt.row].text(), cut
        text = pieces[5].decode().rstrip("\n")
        assert text == reference.text(), cut


def find_window(whole, part):
    """Where PART, a smaller screen, lies on WHOLE: (columns, rows) or None."""
    for top in range(max(1, whole.rows - part.rows + 1)):
        for left in range(max(1, whole.cols - part.cols + 1)):
            if is_window(whole, part, left, top):
                return left, top
    return None


def is_window(whole, part, left, top):
    for i in range(min(part.rows, whole.rows)):
        source, shown = whole.buffer.rows[top + i], part.buffer.rows[i]
        n = min(part.cols, whole.cols)
        if not same_cells(source, shown, left, n):
            return False
    return True


def same_cells(source, shown, left, n):
    """Halves of wide characters at an edge may be blank."""
    for col in range(n):
        ch, pen = source.ch[left + col], source.pen[left + col]
        # nothing is ever erased by a program in a picture
        pen = pen._replace(flags=pen.flags & ~PROTECTED)
        one = compare.seen(ch, pen)
        two = compare.seen(shown.ch[col], shown.pen[col])
        if one == two:
            continue
        is_half = ch == "" or (left + col + 1 < len(source.ch)
                               and source.ch[left + col + 1] == "")
        if not (is_half and col in (0, n - 1) and two[0] == " "):
            return False
    return True


def mismatch(whole, part):
    """Says of the window that is right in most rows where it is wrong."""
    best, found = -1, ""
    n = min(part.cols, whole.cols)
    for top in range(max(1, whole.rows - part.rows + 1)):
        for left in range(max(1, whole.cols - part.cols + 1)):
            wrong = [i for i in range(min(part.rows, whole.rows))
                     if not same_cells(whole.buffer.rows[top + i],
                                       part.buffer.rows[i], left, n)]
            if part.rows - len(wrong) > best:
                best = part.rows - len(wrong)
                one = whole.buffer.rows[top + wrong[0]].copy()
                one.ch, one.pen = (x[left:left + n] for x in (one.ch, one.pen))
                two = part.buffer.rows[wrong[0]].copy()
                two.fit(n)
                found = (f"window {left},{top}, {len(wrong)} rows wrong, "
                         + str(compare.row_difference(
                             f"row {wrong[0]}", one, two)))
    return found


@pytest.mark.parametrize("picture", [(40, 10), (100, 30)], ids=str)
@pytest.mark.parametrize(
    "case", [c for c in cases() if c[1:] == (80, 24)], ids=case_id)
def test_a_picture_follows_by_changes(case, picture):
    """A11: a viewer of another size sees a part, or all with a margin, and the
    cursor where it is, although only changes are sent."""
    path, cols, rows = case
    data = path.read_bytes()
    at = points(data, 9, cols, rows, 3)
    cuts = sections(path, cols, rows, picture, at)
    reference, fed, vt = Vt(cols, rows), 0, Vt(*picture)
    for cut, pieces in zip(at, cuts):
        reference.feed(data[fed:cut])
        fed = cut
        vt.feed(pieces[6])
        assert vt.is_ground() and vt.queries == []
        window = find_window(reference, vt)
        assert window, f"cut {cut}: {mismatch(reference, vt)}"
        if reference.modes[25] and vt.modes[25]:
            left, top = window
            same = is_window(reference, vt, left, top)
            assert same, cut
            is_there = (vt.row + top, vt.col + left) == (
                reference.row, reference.col)
            others = [
                (x, y) for y in range(max(1, rows - vt.rows + 1))
                for x in range(max(1, cols - vt.cols + 1))
                if (vt.row + y, vt.col + x) == (reference.row, reference.col)
            ] if not is_there else [window]
            assert any(is_window(reference, vt, x, y) for x, y in others), (
                f"cut {cut}: cursor {vt.row},{vt.col} for"
                f" {reference.row},{reference.col}, window {window}")
    assert [e for e in vt.events if e[0] != "flash"] == []


def report(found):
    return "\n".join(found[:8]) + (
        f"\n... {len(found)} in all" if len(found) > 8 else "")
