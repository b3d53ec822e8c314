"""tests/terminal/vt.py, the terminal that the black-box tests look at berth
with, does what xterm does: a rule a test, written down by hand. In pieces of a
byte it does the same.
"""
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/terminal"))

import answers  # noqa: E402
import compare  # noqa: E402
import grid  # noqa: E402
from terminal import Terminal  # noqa: E402
from vt import Vt  # noqa: E402


def vt(data, cols=10, rows=4, **kw):
    """A terminal fed with DATA at once, checked to be the same byte by byte."""
    data = data.encode() if isinstance(data, str) else data
    whole, pieces = Vt(cols, rows, **kw), Vt(cols, rows, **kw)
    whole.feed(data)
    for i in range(len(data)):
        pieces.feed(data[i:i + 1])
    assert compare.differences(whole, pieces) == []
    assert whole.queries == pieces.queries
    assert whole.events == pieces.events
    assert whole.history_lines() == pieces.history_lines()
    return whole


TEXT = {
    "a line feed goes straight down": ("ab\ncd", ["ab", "  cd", "", ""]),
    "lines longer than the screen wrap": (
        "0123456789abc", ["0123456789", "abc", "", ""]),
    "a wrap waits for the next character": (
        "0123456789\rX", ["X123456789", "", "", ""]),
    "without DECAWM the last column is written again": (
        "\x1b[?7l0123456789abc", ["012345678c", "", "", ""]),
    "IRM shifts": ("abc\r\x1b[4hXY", ["XYabc", "", "", ""]),
    "LNM makes a line feed go to the left": (
        "\x1b[20hab\ncd", ["ab", "cd", "", ""]),
    "a wide character takes two columns": ("日x", ["日x", "", "", ""]),
    "a wide character does not fit into one column": (
        "012345678日", ["012345678", "日", "", ""]),
    "half of a wide character is none": (
        "日本\x1b[1;2Hx", [" x本", "", "", ""]),
    "combining characters join": ("e\u0301x", ["e\u0301x", "", "", ""]),
    "variation selectors take no room": ("☃\ufe0fx", ["☃\ufe0fx", "", "", ""]),
    "ambiguous characters are narrow": ("±x", ["±x", "", "", ""]),
    "bytes that are no UTF-8 are replaced": (b"a\xffb", ["a\ufffdb"] + 3 * [""]),
    "tabs are every eight columns": ("\ta\tb", ["        ab", "", "", ""]),
    "set tabs": ("\x1b[3g\x1b[4G\x1bH\r\tx", ["   x", "", "", ""]),
    "a scroll region scrolls alone": (
        "a\r\nb\r\nc\r\nd\x1b[2;3r\x1b[3H\nX", ["a", "c", "X", "d"]),
    "reverse index at the top": ("a\x1b[H\x1bMx", ["x", "a", "", ""]),
    "origin mode": ("\x1b[2;3r\x1b[?6h\x1b[Hx\x1b[9Hy", ["", "x", "y", ""]),
    "left and right margins": (
        "\x1b[?69h\x1b[3;5s\x1b[1;3Habcd", ["  abc", "  d", "", ""]),
    "line drawing": ("\x1b(0qx\x1b(Bq", ["─│q", "", "", ""]),
    "single shift": ("\x1b*0\x1bNqq", ["─q", "", "", ""]),
    "REP": ("ab\x1b[3bc", ["abbbbc", "", "", ""]),
    "ICH": ("abc\r\x1b[2@", ["  abc", "", "", ""]),
    "DCH": ("abcdef\r\x1b[2P", ["cdef", "", "", ""]),
    "ECH": ("abcdef\r\x1b[2X", ["  cdef", "", "", ""]),
    "IL": ("a\r\nb\x1b[H\x1b[L", ["", "a", "b", ""]),
    "DL": ("a\r\nb\x1b[H\x1b[M", ["b", "", "", ""]),
    "EL 0 leaves a full row alone": (
        "0123456789\x1b[K", ["0123456789", "", "", ""]),
    "ED 0": ("ab\r\ncd\x1b[1;2H\x1b[J", ["a", "", "", ""]),
    "ED 1": ("ab\r\ncd\x1b[2;1H\x1b[1J", ["", " d", "", ""]),
    "SU and SD": ("a\r\nb\x1b[S\x1b[2T", ["", "", "b", ""]),
    "the alternate screen covers the main one": (
        "main\x1b[?1049h\x1b[Halt", ["alt", "", "", ""]),
    "and the cursor comes back": (
        "main\x1b[?1049halt\x1b[?1049lX", ["mainX", "", "", ""]),
    "a control inside of a sequence acts": ("ab\x1b[\r1CX", ["aX"] + 3 * [""]),
    "CAN ends a sequence": ("\x1b[3\x18x", ["x", "", "", ""]),
    "CAN ends a string": ("\x1b]0;no\x18x", ["x", "", "", ""]),
    "an unknown sequence is swallowed": ("\x1b[?9;9zx", ["x", "", "", ""]),
    "an escape begins anew": ("\x1b[3\x1b[2Cx", ["  x", "", "", ""]),
    "DECALN": ("\x1b#8", 4 * ["E" * 10]),
    "HPA and VPA": ("\x1b[3`\x1b[2dx", ["", "  x", "", ""]),
    "DECSC keeps the pen's charset": (
        "\x1b(0\x1b7\x1b(B\x1b8q", ["─", "", "", ""]),
}


@pytest.mark.parametrize("name", TEXT)
def test_text(name):
    data, lines = TEXT[name]
    assert vt(data).lines() == lines


PENS = {
    "1;3;4;9": dict(flags=grid.BOLD | grid.ITALIC | grid.STRIKE, underline=1),
    "4:3;58:5:9": dict(underline=3, ul_colour=9),
    "38;2;1;2;3;48;5;200": dict(fg=grid.RGB | 0x010203, bg=200),
    "38:2::1:2:3": dict(fg=grid.RGB | 0x010203),
    "31;92;44;105": dict(fg=10, bg=13),
    "7;27;31;39": {},
    "21": dict(underline=2),
    "1;2;22;53": dict(flags=grid.OVERLINE),
    "38;5": {},
}


@pytest.mark.parametrize("params", PENS)
def test_sgr(params):
    expected = grid.PLAIN._replace(**PENS[params])
    assert vt(f"\x1b[{params}mx").buffer.rows[0].pen[0] == expected
    assert vt(f"\x1b[{params}m\x1b[mx").buffer.rows[0].pen[0] == grid.PLAIN


def test_an_erased_cell_has_the_background_only():
    row = vt("\x1b[1;4;31;42m\x1b[K").buffer.rows[0]
    assert set(row.pen) == {grid.PLAIN._replace(bg=2)}


def test_lines_that_scroll_off_are_the_history():
    t = vt("".join(f"line {i}\r\n" for i in range(9)) + "0123456789abc\r\n" * 3)
    assert t.history_lines()[:9] == [f"line {i}" for i in range(9)]
    assert t.history_lines()[9] == "0123456789abc"
    assert t.n_scrolled == 9 + 6 - 3


def test_nothing_of_the_alternate_screen_is_history():
    assert vt("\x1b[?1049h" + "x\r\n" * 20).history_lines() == []


def test_modes_are_known():
    t = vt("\x1b[?1;1002;1006;2004;1004h\x1b[?25;7l\x1b=\x1b[4h\x1b[4 q"
           "\x1b[>4;2m\x1b[>1u\x1b[?1049h\x1b[>3u\x1b[2;3r")
    assert all(t.modes[m] for m in (1, 2004, 1004, 66))
    assert not t.modes[25] and not t.modes[7] and t.ansi[4]
    assert (t.mouse, t.encoding, t.cursor_shape) == (1002, 1006, 4)
    assert t.modify_keys == {4: 2}
    assert (t.main.kitty.flags, t.alt.kitty.flags) == (1, 3)
    assert (t.top, t.bottom) == (1, 2)
    t.feed(b"\x1b[<u\x1b[?1049l\x1b[<9u\x1b[?1002l\x1b[?1006l\x1b[!p")
    assert (t.kitty.flags, t.mouse, t.encoding) == (0, 0, 0)
    assert t.modes[25] and t.modes[7] and not t.ansi[4]
    assert (t.top, t.bottom) == (0, 3)


def test_strings_set_titles_colours_and_links():
    t = vt("\x1b]0;both\x07\x1b]2;title\x1b\\\x1b]4;1;rgb:ff/80/00\x07"
           "\x1b]11;#102030\x07\x1b]8;id=a;http://x/\x07l\x1b]8;;\x07m")
    assert (t.title, t.icon) == ("title", "both")
    assert t.palette == {1: 0xff8000} and t.dynamic == {11: 0x102030}
    assert t.buffer.rows[0].pen[0].link == ("a", "http://x/")
    assert t.buffer.rows[0].pen[1].link is None
    t.feed(b"\x1b[22;0t\x1b]2;other\x07\x1b[23;0t\x1b]104\x07\x1b]111\x07")
    assert (t.title, t.palette, t.dynamic) == ("title", {}, {})


def test_what_disturbs_is_noted():
    t = vt("\x07\x1b]52;c;aGVsbG8=\x07\x1b]9;note\x07\x1b]777;notify;a;b\x07"
           "\x1b[5i\x1b[?5h\x1b[?5l")
    assert [kind for kind, _ in t.events] == [
        "bell", "clipboard", "notify", "notify", "print", "flash", "flash"]


def test_queries_are_noted():
    t = vt("\x1b[c\x1b[>c\x1b[=c\x1b[6n\x1b[5n\x1b[>q\x1b]10;?\x07"
           "\x1b]11;?\x1b\\\x1b]4;1;?\x07\x1b[?2026$p\x1bP+q544e\x1b\\"
           "\x1b[?u\x1b[14t\x1b[18t\x1b]52;c;?\x07\x1bP$qm\x1b\\\x05")
    assert [kind for kind, _ in t.queries] == [
        "DA1", "DA2", "DA3", "DSR", "DSR", "XTVERSION", "OSC 10", "OSC 11",
        "OSC 4", "DECRQM", "XTGETTCAP", "KITTY", "WINOPS", "WINOPS",
        "OSC 52", "DECRQSS", "ENQ"]
    assert t.text() == ""


def test_a_resize_keeps_the_cursors_row():
    t = vt("a\r\nb\r\nc\r\nd")
    t.resize(5, 2)
    assert t.lines() == ["c", "d"] and t.history_lines() == ["a", "b"]
    assert (t.row, t.col) == (1, 1)
    t.resize(20, 3)
    t.feed(b"\r\n" + b"0123456789abc")
    assert t.lines() == ["c", "d", "0123456789abc"]


def test_compare_finds_differences():
    """The comparison itself is no rubber stamp."""
    base = "\x1b[1mab\x1b[m\x1b[3;4Hc"
    same = Vt(10, 4), Vt(10, 4)
    for t in same:
        t.feed(base.encode())
    assert compare.differences(*same) == []
    for more in ("x", "\x1b[H", "\x1b[?1000h", "\x1b[4h", "\x1b[31m",
                 "\x1b[?1049h", "\x1b]2;t\x07", "\x1b[2;3r", "\x1b[>1u",
                 "\x1b(0", "\x1b[1;1H\x1b[22ma\x1b[3;5H", "\x1b[3g",
                 "\x1b[5 q", "\x1b[>4;1m", "\x1b[?69h"):
        other = Vt(10, 4)
        other.feed((base + more).encode())
        assert compare.differences(same[0], other), more


# ---- the terminal around it --------------------------------------------------

ASKS = r"""
stty raw -echo
printf '\033[c\033[6n\033]11;?\007'
head -c 46 | od -An -c
printf 'over\033[?2004h\r\n'
sleep 60
"""


def test_a_terminal_answers_what_it_is_asked():
    with Terminal(["sh", "-c", ASKS], 80, 24, delay=0.05) as t:
        t.wait_for("over")
        assert [s.why for s in t.replies()] == ["DA1", "DSR", "OSC 11"]
        assert t.replies()[1].data == b"\x1b[1;1R"
        assert t.replies()[2].data == b"\x1b]11;rgb:1010/2020/3030\x1b\\"
        t.wait_until(lambda vt: vt.modes[2004])
        t.paste("a\rb")
        assert t.sent[-1].data == b"\x1b[200~a\rb\x1b[201~"


def test_a_terminal_of_a_size_that_changes():
    script = "trap 'stty size' WINCH; stty size; while :; do sleep .05; done"
    with Terminal(["bash", "-c", script], 101, 37) as t:
        t.wait_for("37 101")
        t.resize(70, 20)
        t.wait_for("20 70")


def test_the_end_of_a_program_is_seen():
    with Terminal(["sh", "-c", "echo last; exit 3"]) as t:
        assert t.wait() == 3
        assert t.lines()[0] == "last"
        with pytest.raises(AssertionError, match="over before"):
            t.wait_for("never")


@pytest.mark.parametrize("data, name, sent", (
    ("", "up", "\x1b[A"), ("\x1b[?1h", "up", "\x1bOA"),
    ("", "ctrl-c", "\x03"), ("\x1b[>1u", "ctrl-c", "\x1b[99;5u"),
    ("", "ctrl-]", "\x1d"), ("\x1b[>4;2m", "ctrl-]", "\x1b[27;5;93~"),
))
def test_keys_are_sent_as_modes_say(data, name, sent):
    assert answers.key(vt(data), name) == sent


@pytest.mark.parametrize("data, sent", (
    ("", ""), ("\x1b[?1000h", "\x1b[M #%"),
    ("\x1b[?1002;1006h", "\x1b[<0;3;5M"), ("\x1b[?1000;1015h", "\x1b[32;3;5M"),
))
def test_the_mouse_is_sent_as_modes_say(data, sent):
    assert answers.mouse(vt(data), 4, 2) == sent
