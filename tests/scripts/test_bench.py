"""tests/bench computes and prints right what it measured, whatever the
numbers are. Nothing is timed here: no timing decides a test."""
import importlib.util
import json
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BENCH = ROOT / "tests/bench"


@pytest.fixture(scope="module")
def report():
    spec = importlib.util.spec_from_file_location("report",
                                                  BENCH / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def bench(*args):
    done = subprocess.run([sys.executable, BENCH / "bench.py", *args],
                          text=True, capture_output=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("samples,q,expected", [
    ([], 0.5, None),
    ([7], 0.99, 7),
    ([3, 1, 2], 0.5, 2),
    ([4, 1, 3, 2], 0.5, 2.5),
    (list(range(101)), 0.99, 99),
    ([0, 10], 0.25, 2.5),
    ([5, 1], 1.0, 5),
    ([5, 1], 0.0, 1),
])
def test_quantile(report, samples, q, expected):
    assert report.quantile(samples, q) == expected


@pytest.mark.parametrize("ours,theirs,expected", [
    (3, 2, 1.5), (0, 2, 0), (3, 0, None), (3, None, None), (None, 2, None),
])
def test_ratio(report, ours, theirs, expected):
    assert report.ratio(ours, theirs) == expected


@pytest.mark.parametrize("value,said", [
    (None, "-"), (0, "0"), (0.04217, "0.0422"), (1.2345, "1.23"),
    (12.345, "12.3"), (123.45, "123"), (12345.6, "12346"),
])
def test_number_has_three_digits(report, value, said):
    assert report.number(value) == said


@pytest.mark.parametrize("better,aim,is_ratio,ours,theirs,verdict", [
    ("higher", 0.9, True, 90, 100, "ok"),
    ("higher", 0.9, True, 89, 100, "short"),
    ("lower", 1.25, True, 125, 100, "ok"),
    ("lower", 1.25, True, 126, 100, "short"),
    ("lower", 700, False, 700, None, "ok"),
    ("lower", 700, False, 701, None, "short"),
    ("lower", 1.0, True, 5, None, ""),
    ("lower", None, True, 5, 1, ""),
])
def test_verdict(report, better, aim, is_ratio, ours, theirs, verdict):
    row = report.Row("m", "x", "name", "unit", better, aim, is_ratio)
    assert row.verdict(ours, theirs) == verdict


def rows_and_samples(report):
    rows = [
        report.Row("down", "rate", "exec down", "MB/s", "higher", 1.0),
        report.Row("echo", "p99", "echo, p99", "ms", "lower", 1.25,
                   stat="p99"),
        report.Row("gone", "x", "not measured", "ms", "lower", 1.25),
        report.Row("many", "pss", "200 sessions", "MiB", "lower"),
    ]
    samples = {
        "down.rate": {"berth": [10, 30, 20], "openssh": [40, 10, 25]},
        "echo.p99": {"berth": list(range(101)),
                     "openssh": [2 * x for x in range(101)]},
        "many.pss": {"berth": [9]},
    }
    return rows, samples


def test_table_shows_medians_ratios_and_verdicts(report):
    rows, samples = rows_and_samples(report)
    lines = report.text_table(rows, samples).splitlines()
    assert [line.split() for line in lines[1:]] == [
        ["exec", "down", "MB/s", "20.0", "25.0", "0.80", ">=", "1", "x",
         "short"],
        ["echo,", "p99", "ms", "99.0", "198", "0.50", "<=", "1.25", "x", "ok"],
        ["200", "sessions", "MiB", "9.00", "-", "-"],
    ]
    # numbers end in the same column
    at = lines[0].index("berth") + len("berth")
    assert {line[:at].split()[-1] for line in lines[1:]} == {
        "20.0", "99.0", "9.00"}


def test_markdown_has_the_same_cells(report):
    rows, samples = rows_and_samples(report)
    lines = report.markdown_table(rows, samples).splitlines()
    assert len(lines) == 5
    assert {line.count("|") for line in lines} == {8}
    assert lines[2] == ("| exec down | MB/s | 20.0 | 25.0 | 0.80 | >= 1 x"
                        " | short |")


def test_json_holds_samples_medians_and_ratio(report, tmp_path):
    rows, samples = rows_and_samples(report)
    path = tmp_path / "bench.json"
    report.save(path, report.document(rows, samples, {"date": "today"}))
    read = json.loads(path.read_text())
    assert read["date"] == "today"
    assert [row["key"] for row in read["rows"]] == ["down.rate", "echo.p99",
                                                    "many.pss"]
    first = read["rows"][0]
    assert (first["berth"], first["openssh"], first["ratio"]) == (20, 25, 0.8)
    assert first["samples"]["berth"] == [10, 30, 20]
    assert read["rows"][2]["ratio"] is None


def test_list_names_every_measure():
    code, out, err = bench("--list")
    assert (code, err) == (0, "")
    listed = {line.split()[0] for line in out.splitlines()}
    defined = set()
    for module in ("streams", "transfers", "logins", "memory", "screen",
                   "forwards", "viewers", "sandboxes"):
        text = (BENCH / f"{module}.py").read_text()
        table = text[text.index("\nMEASURES = {"):]
        defined |= set(re.findall(r'"(\w+)":', table))
    assert listed == defined


def test_only_chooses_by_glob():
    code, out, _ = bench("--list", "--only", "echo_*,login")
    assert code == 0
    assert {line.split()[0] for line in out.splitlines()} == {
        "echo_idle", "echo_flood", "login"}


@pytest.mark.parametrize("args", [
    ("--only", "nothing"), ("--rounds", "0"), ("--rounds", "x"), ("extra",),
])
def test_wrong_arguments_are_a_usage_error(args):
    code, _, err = bench(*args)
    assert code == 2
    assert "usage" in err
