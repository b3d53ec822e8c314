"""scripts/deps.sh on a machine that lacks packages: the package tools are
replaced by scripts of our own, so that nothing is installed."""
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def machine(tmp_path):
    """A folder of fake tools; its file `absent` lists what is not installed."""
    tools = {
        # prints a line for each package that is not listed in `absent`
        "dpkg-query": """
            shift 2; rc=0
            for p; do
                if grep -qx "$p" absent; then rc=1
                else echo "installed $p"; fi
            done
            exit $rc""",
        "apt-get": """
            echo "apt-get $*" >>log
            case " $* " in
            *' install '*) [ -e broken ] || : >absent ;;
            *' update '*) [ ! -e offline ] ;;
            esac""",
        "apt-cache": '[ "$3" != unknown ] && ! grep -qx "$2" unknown',
        "sudo": '[ -e sudo_works ] || exit 1; shift; exec "$@"',
        "id": "cat uid",
        "getent": 'echo "getent $*" >>log; grep -qx "$2" users',
        "useradd": 'echo "useradd $*" >>log',
    }
    (tmp_path / "bin").mkdir()
    for name, text in tools.items():
        path = tmp_path / "bin" / name
        path.write_text(f"#!/bin/sh\ncd {tmp_path}\n{text}\n")
        path.chmod(0o755)
    for name, text in {"absent": "", "log": "", "uid": "0\n", "unknown": "",
                       "users": "berth\nberth-box\nberth-net\n"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def deps(machine, what):
    path = f"{machine / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run([ROOT / "scripts/deps.sh", what], text=True,
                          capture_output=True, timeout=30,
                          env={**os.environ, "PATH": path})
    return done.returncode, done.stdout, done.stderr


def apt_lines(machine):
    lines = (machine / "log").read_text().splitlines()
    return [line for line in lines if line.startswith("apt-get")]


@pytest.mark.parametrize("uid", ["0", "1000"])
@pytest.mark.parametrize("what", ["run", "test", "bench"])
def test_silent_when_all_is_there(machine, what, uid):
    (machine / "uid").write_text(uid)
    assert deps(machine, what) == (0, "", "")
    assert apt_lines(machine) == []


def test_root_installs_only_what_is_missing(machine):
    (machine / "absent").write_text("libssh-dev\njq\n")
    assert deps(machine, "test")[0] == 0
    update, install = apt_lines(machine)
    assert update.endswith(" update")
    assert install.endswith("install --no-install-recommends libssh-dev jq")


def test_run_does_not_want_the_tests_packages(machine):
    (machine / "absent").write_text("jq\n")
    assert deps(machine, "run")[0] == 0
    assert apt_lines(machine) == []


@pytest.mark.parametrize("what,package", [
    ("long", "valgrind"), ("fuzz", "clang")])
def test_tools_of_slow_tests_are_wanted_by_those_alone(machine, what, package):
    (machine / "absent").write_text(f"{package}\n")
    assert deps(machine, "test")[0] == 0
    assert apt_lines(machine) == []
    assert deps(machine, what)[0] == 0
    assert apt_lines(machine)[1].endswith(f" {package}")


def test_only_the_bench_wants_a_server_of_openssh(machine):
    (machine / "absent").write_text("openssh-server\n")
    assert deps(machine, "test")[0] == 0
    assert apt_lines(machine) == []
    assert deps(machine, "bench")[0] == 0
    assert apt_lines(machine)[1].endswith(" openssh-server")


def test_either_of_two_names_is_enough(machine):
    (machine / "absent").write_text("pkg-config\n")
    assert deps(machine, "run")[0] == 0
    assert apt_lines(machine) == []


def test_the_name_that_this_debian_knows_is_installed(machine):
    (machine / "absent").write_text("pkg-config\npkgconf\n")
    (machine / "unknown").write_text("pkg-config\n")
    assert deps(machine, "run")[0] == 0
    assert apt_lines(machine)[1].endswith(" pkgconf")


def test_ordinary_user_is_told_the_command(machine):
    (machine / "uid").write_text("1000")
    (machine / "absent").write_text("libssh-dev\njq\n")
    code, out, err = deps(machine, "test")
    assert code == 1
    assert ("apt-get install -y --no-install-recommends libssh-dev jq"
            in out + err)
    assert apt_lines(machine) == []


def test_ordinary_user_with_sudo_installs(machine):
    (machine / "uid").write_text("1000")
    (machine / "sudo_works").touch()
    (machine / "absent").write_text("jq\n")
    assert deps(machine, "test")[0] == 0
    assert apt_lines(machine)[1].endswith(" jq")
    assert "useradd" not in (machine / "log").read_text()


def test_failed_update_does_not_stop_the_install(machine):
    (machine / "absent").write_text("jq\n")
    (machine / "offline").touch()
    assert deps(machine, "test")[0] == 0


def test_install_that_installs_nothing_is_an_error(machine):
    (machine / "absent").write_text("jq\n")
    (machine / "broken").touch()
    code, _, err = deps(machine, "test")
    assert code == 1
    assert "still missing" in err and "jq" in err


def test_root_makes_the_users_that_are_absent(machine):
    (machine / "users").write_text("berth\nberth-net\n")
    assert deps(machine, "run")[0] == 0
    made = [line for line in (machine / "log").read_text().splitlines()
            if line.startswith("useradd")]
    assert len(made) == 1
    assert made[0].startswith("useradd --system ")
    assert made[0].endswith("/usr/sbin/nologin berth-box")


@pytest.mark.parametrize("what", ["", "everything"])
def test_other_words_are_a_usage_error(machine, what):
    code, _, err = deps(machine, what)
    assert code == 2
    assert "usage" in err
