"""What documents say of the programs is what the programs do."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BERTH_BUILD", ROOT / "build/asan"))
PREFIX = "usr/local"


def run(*command, **env):
    done = subprocess.run(command, text=True, capture_output=True, cwd=ROOT,
                          timeout=60, env={**os.environ, **env}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def install(dest, **env):
    run("scripts/install.sh", DESTDIR=str(dest), BERTH_BUILD=str(BUILD), **env)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    dest = tmp_path_factory.mktemp("dest")
    install(dest)
    return dest


@pytest.mark.parametrize("path,mode", [
    ("sbin/berthd", 0o755),
    ("bin/berth", 0o755),
    ("libexec/berth/berth-sshd", 0o755),
    ("libexec/berth/berth-session", 0o755),
    ("libexec/berth/berth-sandbox", 0o755),
    ("libexec/berth/berth-archive", 0o755),
    ("share/man/man1/berth.1", 0o644),
    ("share/man/man5/berth.conf.5", 0o644),
    ("share/man/man8/berthd.8", 0o644),
    ("lib/systemd/system/berthd.service", 0o644),
    ("lib/sysusers.d/berth.conf", 0o644),
])
def test_install_puts_it_there(installed, path, mode):
    assert (installed / PREFIX / path).stat().st_mode & 0o7777 == mode


def test_install_never_touches_a_configuration(tmp_path):
    conf = tmp_path / "etc/berth/berth.conf"
    conf.parent.mkdir(parents=True)
    conf.write_text("mine")
    install(tmp_path)
    assert conf.read_text() == "mine"
    assert (conf.parent / "berth.conf.sample").stat().st_size > 1000


def test_unit_keeps_sessions_alive(installed):
    unit = (installed / PREFIX / "lib/systemd/system/berthd.service"
            ).read_text()
    for line in ("KillMode=process", "OOMPolicy=continue", "Type=notify",
                 "RuntimeDirectoryPreserve=yes", "Delegate=yes",
                 "TasksMax=infinity", "ExecStart=/usr/local/sbin/berthd"):
        assert f"\n{line}\n" in unit
    assert "@" not in unit


def test_unit_of_another_place_names_its_configuration(tmp_path):
    install(tmp_path, PREFIX="/opt/b", SYSCONFDIR="/opt/b/etc")
    unit = (tmp_path / "opt/b/lib/systemd/system/berthd.service").read_text()
    assert "ExecStart=/opt/b/sbin/berthd -c /opt/b/etc/berth.conf\n" in unit


def keys_of_config():
    keys, section = [], None
    for line in run(BUILD / "berthd", "--show-config").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif re.match(r"\w+ =", line):
            keys.append((section, line.split(" =")[0]))
    assert len(keys) > 30
    return keys


def test_manual_and_sample_have_every_option(installed):
    manual = (installed / PREFIX / "share/man/man5/berth.conf.5").read_text()
    sample = (installed / "etc/berth/berth.conf.sample").read_text()
    assert "@OPTIONS@" not in manual
    for _, key in keys_of_config():
        assert re.search(rf"\b{key}\b", manual), key
        assert re.search(rf"^#{key} =", sample, re.M), key


@pytest.mark.parametrize("page", ["man1/berth.1", "man5/berth.conf.5",
                                  "man8/berthd.8"])
def test_manual_pages_begin_and_end_as_such(installed, page):
    text = (installed / PREFIX / "share/man" / page).read_text()
    assert text.startswith(".TH ")
    for heading in ("NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"):
        assert f"\n.SH {heading}\n" in text


def verbs():
    said = run(BUILD / "berth", "--help")
    found = re.findall(r"^  ([a-z]+(?: [a-z]+)?)", said, re.M)
    assert "ls" in found and "rec cat" in found
    return found


def test_every_verb_is_in_the_manual_and_the_readme():
    manual = (ROOT / "docs/man/berth.1").read_text()
    readme = (ROOT / "README.md").read_text()
    for verb in verbs():
        assert re.search(rf'^\.BR? "?{verb}\b', manual, re.M), verb
        assert f"`{verb}" in readme, verb


def test_readme_queries_are_right(tmp_path):
    """Each query of the README runs on an empty store."""
    database = tmp_path / "berth.db"
    migrations = sorted((ROOT / "store/migrations").glob("*.sql"))
    assert migrations
    schema = "".join(f.read_text() for f in migrations)
    subprocess.run(["sqlite3", database], input=schema, text=True, check=True,
                   timeout=30)
    readme = (ROOT / "README.md").read_text()
    queries = re.findall(r"""sqlite3 -readonly \S+ (?:"(.*)"|'(.*)')""",
                         readme)
    assert len(queries) >= 4
    for double, single in queries:
        run("sqlite3", "-readonly", database, double or single)
