"""A check that cannot fail guards nothing: each check of scripts/check.sh is
fed a small tree with one offence, and the same tree without it."""
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

GOOD_H = """/* Adds; used by every process; never overflows. */
#ifndef BASE_ADD_H
#define BASE_ADD_H

#include <stddef.h>

/* Returns A + B. */
size_t add(size_t a, size_t b);

#endif
"""
GOOD_C = """/* See add.h. */
#include "base/add.h"

size_t
add(size_t a, size_t b)
{
	return a + b;
}
"""
GUARD = "/* A header. */\n#ifndef {0}\n#define {0}\n{1}\n#endif\n"
LONG = "/* Long. */\n" + "int a;\n" * 800
UNUSED_RESULT = """/* Reads without looking. */
#include "base/add.h"

#include <stdio.h>

size_t
add(size_t a, size_t b)
{
	fread(&a, 1, sizeof(a), stdin);
	return a + b;
}
"""
DEREFERENCE = """/* Reads through a pointer that it found to be NULL. */
#include "base/add.h"

static size_t
add_first(const size_t *p)
{
	return p ? 1 : *p;
}

size_t
add(size_t a, size_t b)
{
	return a + b + add_first(NULL);
}
"""
OVERRUN = """/* Writes past the end. */
int base_tail(void);

int
base_tail(void)
{
	int a[2];

	a[0] = a[1] = a[2] = 1;
	return a[0];
}
"""
INLINE = """
struct pair {
	int (*less)(int a, int b);
};

/* A typedef and an inline function are no prototypes. */
typedef int (*pair_fn)(int a);

static inline int
pair_first(int a)
{
	return a;
}

/* One comment */
int pair_new(struct pair *p);
void pair_free(struct pair *p);
"""

# check, file, its text, a word of the complaint
OFFENCES = [
    ("format", "base/add.c", GOOD_C.replace("\treturn", "    return"),
     "base/add.c: 1 places"),
    ("includes", "base/up.c", '/* U. */\n#include "store/store.h"\n',
     "base may not include store"),
    ("includes", "conf/side.c", '/* S. */\n#include "store/store.h"\n',
     "conf may not include store"),
    ("includes", "sessions/keeper/up.c",
     '/* U. */\n#include "store/store.h"\n', "may not include store"),
    ("includes", "base/local.c", '/* L. */\n#include "add.h"\n',
     "not written from the root"),
    ("includes", "base/gone.c", '/* G. */\n#include "base/gone.h"\n',
     "does not exist"),
    ("includes", "cli/db.c", "/* D. */\n#include <sqlite3.h>\n",
     "<sqlite3.h> is for store"),
    ("includes", "sshd/listener/ssh.c",
     "/* S. */\n#include <libssh/libssh.h>\n", "is for sshd/connection"),
    ("includes", "base/add.c",
     '/* See add.h. */\n#include <stdio.h>\n\n#include "base/add.h"\n',
     "comes first"),
    ("includes", "attic/old.c", "/* Old. */\n", "no folder of berth's"),
    ("headers", "base/add.h", GOOD_H.replace("#include <stddef.h>", ""),
     "size_t"),
    ("docs", "base/add.h", GOOD_H.replace("/* Returns A + B. */", ""),
     "add() has no comment"),
    ("docs", "base/gap.h", GUARD.format(
        "BASE_GAP_H", "/* The first. */\nint a(void);\n\nint b(int x);"),
     "b() has no comment"),
    ("docs", "base/attribute.h", GUARD.format(
        "BASE_ATTRIBUTE_H",
        "\n\nvoid a(const char *f, ...) __attribute__((format(printf, 1, 2)));"
    ), "a() has no comment"),
    ("docs", "base/add.h", GOOD_H.replace("BASE_ADD_H", "ADD_H"),
     "guard is not BASE_ADD_H"),
    ("docs", "base/silent.c", "int a;\n", "does not open with a comment"),
    ("docs", "base/slashes.c", "/* S. */\nint a; // why\n", "// comment"),
    ("sizes", "base/long.c", LONG, "more than 800 lines"),
    ("sizes", "README.md", "line\n" * 151, "more than 150 lines"),
    ("words", "docs/notes.md", "in /ro" "ot/src\n", "docs/notes.md:1"),
    ("words", "base/later.c", "/* TO" "DO */\n", "base/later.c:1"),
    ("shell", "scripts/unquoted", "#!/bin/sh\nrm $1\n", "SC2086"),
    ("cppcheck", "base/tail.c", OVERRUN, "arrayIndexOutOfBounds"),
    ("tidy", "base/add.c", UNUSED_RESULT, "cert-err33-c"),
    ("tidy", "base/add.c", DEREFERENCE, "core.NullDereference"),
]

CLEAN = {
    "base/add.h": GOOD_H,
    "base/add.c": GOOD_C,
    "base/pair.h": GUARD.format("BASE_PAIR_H", INLINE),
    "store/store.h": GUARD.format("STORE_STORE_H", ""),
    "scripts/quoted": '#!/bin/sh\nrm "$1"\n',
    "base/url.c": '/* A // in a string is none. */\n'
                  'const char *const url = "http://x/"; /* 1 // 2 */\n',
    "README.md": "short\n",
}


def put(tree, name, text):
    path = tree / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def check(tree, *names, **env):
    done = subprocess.run(
        [ROOT / "scripts/check.sh", "-C", tree, *names], text=True,
        capture_output=True, timeout=100, env={**os.environ, **env})
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def tree(tmp_path):
    for name in (".clang-format", ".clang-tidy"):
        shutil.copy(ROOT / name, tmp_path)
    for name, text in CLEAN.items():
        put(tmp_path, name, text)
    return tmp_path


def is_judged(name):
    """format and tidy have an opinion only with the LLVM of their rules."""
    if name not in ("format", "tidy"):
        return True
    version = subprocess.run([f"clang-{name}", "--version"], text=True,
                             capture_output=True, check=True).stdout
    return "version 14." in version


@pytest.mark.parametrize("name,path,text,complaint", OFFENCES)
def test_offence_is_found(tree, name, path, text, complaint):
    if not is_judged(name):
        pytest.skip("explained: another LLVM than the rules are for")
    put(tree, path, text)
    code, said = check(tree, name)
    assert code == 1
    assert f"FAIL  {name}" in said
    assert complaint in said


def test_clean_tree_passes_every_check(tree):
    names = {row[0] for row in OFFENCES}
    code, said = check(tree, *sorted(names))
    assert code == 0, said
    assert said.count("ok    ") == len(names)


def test_all_checks_run_after_a_failure(tree):
    put(tree, "base/silent.c", "int a; // why\n")
    code, said = check(tree, "docs", "sizes", "words")
    assert code == 1
    assert "FAIL  docs" in said
    assert "ok    sizes" in said and "ok    words" in said


def test_unknown_check_is_a_usage_error(tree):
    code, said = check(tree, "nothing")
    assert code == 2
    assert "no check 'nothing'" in said


def test_tidy_looks_again_when_a_header_changed(tree):
    if not is_judged("tidy"):
        pytest.skip("explained: another LLVM than the rules are for")
    assert check(tree, "tidy")[0] == 0
    put(tree, "base/add.h", GOOD_H.replace("size_t a,", "size_t first,"))
    code, said = check(tree, "tidy")
    assert code == 1
    assert "inconsistent-declaration-parameter-name" in said


PROGRAMS = ["berthd", "berth-sshd", "berth-session", "berth-sandbox", "berth-archive",
            "berth"]


def link(tree, program, *libraries):
    source = tree / "main.c"
    source.write_text("int main(void) { return 0; }\n")
    (tree / "bin").mkdir(exist_ok=True)
    subprocess.run(["cc", "-o", tree / "bin" / program, source,
                    "-Wl,--no-as-needed", *libraries], check=True)


@pytest.mark.parametrize("program,library,complaint", [
    ("berth-session", "-lssh", "berth-session: links ssh"),
    ("berth-session", "-lssh", "berth-session: loads crypto"),
    ("berth-session", "-lsqlite3", "berth-session: links sqlite3"),
    ("berthd", "-lssh", "berthd: links ssh"),
    ("berth-sshd", "-lsqlite3", "berth-sshd: links sqlite3"),
    ("berth-sandbox", "-levent_core", "berth-sandbox: links event_core"),
    ("berth", "-lssh", "berth: links ssh"),
])
def test_wrong_link_is_found(tree, program, library, complaint):
    for name in PROGRAMS:
        link(tree, name, "-lc")
    link(tree, program, library)
    code, said = check(tree, "links", BERTH_BUILD="bin")
    assert code == 1
    assert complaint in said


def test_right_links_pass(tree):
    link(tree, "berthd", "-levent_core", "-lsqlite3", "-linih", "-ljansson",
         "-lsodium")
    link(tree, "berth-sshd", "-lssh", "-levent_core")
    link(tree, "berth-session", "-levent_core", "-lutf8proc", "-lzstd")
    link(tree, "berth-sandbox")
    link(tree, "berth-archive", "-larchive", "-lsodium")
    link(tree, "berth", "-ljansson")
    assert check(tree, "links", BERTH_BUILD="bin")[0] == 0
