"""scripts/test.sh counts right: a crash, a leak, a missing program or an
unexplained skip must never look like success. Runs it over a small tree whose
"unit tests" are scripts that print what cmocka prints."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

PASS = "[ RUN      ] {0}\n[       OK ] {0}\n"
FAIL = "[ RUN      ] {0}\n[  ERROR   ] --- 1 != 2\n[  FAILED  ] {0}\n"
SKIP = "[ RUN      ] {0}\n[  SKIPPED ] {0}\n"
BEGIN = "[==========] Running 2 test(s).\n"
END = "[==========] 2 test(s) run.\n"

# name, what the program prints, its exit status, the last line, our status
ROWS = [
    ("passes", BEGIN + PASS + PASS + END + "[  PASSED  ] 2 test(s).\n", 0,
     "2 passed, 0 failed, 0 skipped", 0),
    ("newer_cmocka_names_the_group",
     BEGIN.replace("Run", "tests: Run") + PASS + END.replace("]", "] tests:"),
     0, "1 passed, 0 failed, 0 skipped", 0),
    ("two_groups", BEGIN + PASS + END + BEGIN + PASS + END, 0,
     "2 passed, 0 failed, 0 skipped", 0),
    ("summary_lists_failures_again", BEGIN + PASS + FAIL + END
     + "[  FAILED  ] 1 test(s), listed below:\n[  FAILED  ] a\n", 1,
     "1 passed, 1 failed, 0 skipped", 1),
    ("crash_in_the_second", BEGIN + PASS + "[ RUN      ] b\n", 139,
     "1 passed, 1 failed, 0 skipped", 1),
    ("leak_after_the_end", BEGIN + PASS + END, 23,
     "1 passed, 1 failed, 0 skipped", 1),
    ("exits_early_but_happy", BEGIN + PASS, 0,
     "1 passed, 1 failed, 0 skipped", 1),
    ("says_nothing", "", 0, "0 passed, 1 failed, 0 skipped", 1),
    ("skip_without_reason", BEGIN + PASS + SKIP + END, 0,
     "1 passed, 0 failed, 1 skipped", 1),
    ("skip_with_reason", BEGIN + PASS
     + "[ RUN      ] b\nexplained: needs root\n[  SKIPPED ] b\n" + END, 0,
     "1 passed, 0 failed, 1 skipped", 0),
    ("reason_counts_for_one_skip_only", BEGIN
     + "[ RUN      ] a\nexplained: needs root\n[  SKIPPED ] a\n" + SKIP + END,
     0, "0 passed, 0 failed, 2 skipped", 1),
]


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "scripts").mkdir()
    (tmp_path / "tests/unit").mkdir(parents=True)
    (tmp_path / "tests/scripts").mkdir()
    (tmp_path / "build/asan/unit").mkdir(parents=True)
    shutil.copy(ROOT / "scripts/test.sh", tmp_path / "scripts")
    return tmp_path


def unit(tree, name, text, status):
    (tree / f"tests/unit/{name}_test.c").touch()
    path = tree / f"build/asan/unit/{name}_test"
    path.write_text(f"#!/bin/sh\ncat <<'X'\n{text}X\nexit {status}\n")
    path.chmod(0o755)


def count(tree, what):
    env = {k: v for k, v in os.environ.items()
           if k != "BERTH_BUILD" and not k.startswith("PYTEST")}
    done = subprocess.run([tree / "scripts/test.sh", what], text=True,
                          capture_output=True, timeout=100, env=env)
    return done.returncode, done.stdout


@pytest.mark.parametrize("name,text,status,last,ours", ROWS,
                         ids=[row[0] for row in ROWS])
def test_unit_output(tree, name, text, status, last, ours):
    unit(tree, name, text.format("a"), status)
    code, said = count(tree, "unit")
    assert said.splitlines()[-1] == last
    assert code == ours


def test_programs_are_summed_and_the_failed_one_is_shown(tree):
    unit(tree, "good", (BEGIN + PASS + END).format("fine"), 0)
    unit(tree, "bad", (BEGIN + FAIL + END).format("broken"), 1)
    code, said = count(tree, "unit")
    assert said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert "--- 1 != 2" in said and "fine" not in said
    assert code == 1


def test_program_that_was_not_built_fails(tree):
    (tree / "tests/unit/lost_test.c").touch()
    code, said = count(tree, "unit")
    assert "lost_test was not built" in said
    assert said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert code == 1


def test_stale_program_without_its_source_is_not_run(tree):
    unit(tree, "good", (BEGIN + PASS + END).format("a"), 0)
    unit(tree, "stale", (BEGIN + FAIL + END).format("a"), 1)
    (tree / "tests/unit/stale_test.c").unlink()
    assert count(tree, "unit")[0] == 0


def fuzz(tree, name, text, status):
    (tree / "tests/fuzz/corpus" / name).mkdir(parents=True)
    (tree / f"tests/fuzz/{name}_fuzz.c").touch()
    path = tree / f"build/asan/fuzz/{name}"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {text} $1\nexit {status}\n")
    path.chmod(0o755)


def test_each_fuzz_target_counts_as_one_test(tree):
    unit(tree, "good", (BEGIN + PASS + END).format("a"), 0)
    fuzz(tree, "fine", "silent", 0)
    fuzz(tree, "crash", "crashed at", 77)
    code, said = count(tree, "unit")
    assert said.splitlines()[-1] == "2 passed, 1 failed, 0 skipped"
    assert "crashed at tests/fuzz/corpus/crash" in said
    assert "silent" not in said
    assert code == 1


def test_fuzz_target_that_was_not_built_fails(tree):
    unit(tree, "good", (BEGIN + PASS + END).format("a"), 0)
    fuzz(tree, "lost", "", 0)
    (tree / "build/asan/fuzz/lost").unlink()
    code, said = count(tree, "unit")
    assert "lost was not built" in said
    assert said.splitlines()[-1] == "1 passed, 1 failed, 0 skipped"
    assert code == 1


PYTHON = """
import pytest
def test_a(): pass
def test_b(): {0}
"""


@pytest.mark.parametrize("body,last,ours", [
    ("pass", "2 passed, 0 failed, 0 skipped", 0),
    ("assert False", "1 passed, 1 failed, 0 skipped", 1),
    ("pytest.skip('later')", "1 passed, 0 failed, 1 skipped", 1),
    ("pytest.skip('explained: no root')", "1 passed, 0 failed, 1 skipped", 0),
    ("import os; os._exit(0)", "1 passed, 1 failed, 0 skipped", 1),
])
def test_pytest_results(tree, body, last, ours):
    (tree / "tests/scripts/test_x.py").write_text(PYTHON.format(body))
    code, said = count(tree, "scripts")
    assert said.splitlines()[-1] == last
    assert code == ours


def test_no_python_tests_at_all_fail(tree):
    code, said = count(tree, "scripts")
    assert said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert code == 1


def test_fixture_error_fails(tree):
    (tree / "tests/scripts/test_x.py").write_text(
        "def test_a(nothing): pass\n")
    code, said = count(tree, "scripts")
    assert said.splitlines()[-1] == "0 passed, 1 failed, 0 skipped"
    assert code == 1
