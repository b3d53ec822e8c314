"""Limits, freezing and the end of sandboxes where all controllers are of cgroup
v2, as on the hosts of today: in a guest, for this host may be another kind. One
boot for all; the guest's script says what it saw in lines `@name value`.
"""

import pytest

import guest
from berth import IS_ROOT

CONF = """[access]
default_template = small
[recording]
min_free = 1M
[template small]
memory = 48M
cpu = 50
pids = 30
"""

# As systemd starts a service with Delegate=yes: in a group that it may have
# groups below; then as an ordinary user to whom one is delegated.
SCRIPT = r"""
say() { echo "@$*"; }
G=/sys/fs/cgroup
conf() { cat >/etc/berth.conf; }
conf <<EOT
%(conf)s
EOT
cat >/usr/bin/as_user <<'EOT'
#!/bin/sh
exec /usr/bin/setpriv --reuid 1000 --regid 1000 --clear-groups "$@"
EOT
chmod 755 /usr/bin/as_user

# begin GROUP: berthd as $as in that group
begin() {
	(
		echo 0 >$G/$1/cgroup.procs
		exec $as berthd -c /etc/berth.conf
	) >/tmp/log 2>&1 &
	for i in $(seq 300); do
		$as berth ls >/dev/null 2>&1 && return
		sleep 0.1
	done
	cat /tmp/log
}
in_box() { timeout 30 $as berth sandbox exec box -- sh -c "$1"; }
row() { $as berth sandbox ls --json | tr -d '\n '; }

# try LABEL: limits, their ends, and sleep of a sandbox
try() {
	$as berth sandbox create box
	say "$1-create" $?
	say "$1-unenforced" $(row | sed -n 's/.*"unenforced":\(\[[^]]*\]\).*/\1/p')
	D=$(find $G -name 'berth-*-box' -type d | head -n 1)
	for f in memory.max memory.swap.max pids.max cpu.max; do
		[ -e "$D/$f" ] && say "$1-$f" $(cat "$D/$f")
	done
	in_box 'i=0; while [ $i -lt 60 ]; do sleep 30 & i=$((i+1)); done' \
		>/tmp/forks 2>&1
	say "$1-forks" $(grep -c -i fork /tmp/forks)
	in_box 'dd if=/dev/zero of=/dev/null bs=200M count=1' >/tmp/bomb 2>&1
	say "$1-bomb" $?
	say "$1-reason" $($as berth ls -a --json | tr -d '\n ' |
		grep -o '"reason":"[a-z]*"' | tail -n 1)
	$as berth new -s box -n count -- sh -c \
		'i=0; while :; do i=$((i+1)); echo $i >count; done' >/dev/null
	for i in $(seq 50); do in_box 'test -s count' && break; sleep 0.1; done
	$as berth sandbox suspend box
	say "$1-suspend" $?
	say "$1-phase" $(row | sed -n 's/.*"state":"\([a-z]*\)".*/\1/p')
	[ -n "$D" ] && say "$1-frozen" $(grep frozen "$D/cgroup.events")
	one=$(cat "$W/box/count"); sleep 1; two=$(cat "$W/box/count")
	say "$1-still" $([ "$one" = "$two" ] && echo yes)
	$as berth sandbox resume box
	say "$1-resume" $?
	for i in $(seq 300); do
		three=$(cat "$W/box/count")
		[ "$two" != "$three" ] && break
		sleep 0.1
	done
	say "$1-goes-on" $([ "$two" != "$three" ] && echo yes)
	$as berth sandbox suspend box
	$as berth sandbox rm box
	say "$1-rm" $?
	say "$1-left" $(find $G -name 'berth-*-box' -type d | wc -l)
}

mkdir -p $G/service $G/user /home/user /etc/berth
: >/etc/berth/authorized_keys
chown -R 1000 /home/user $G/user
echo "+memory +pids +cpu" >$G/cgroup.subtree_control

as= W=/var/lib/berth-sandboxes
begin service
try root
kill $(cat $G/service/cgroup.procs $G/service/berth-main/cgroup.procs)
for i in $(seq 300); do
	[ -z "$(cat $G/service/berth-main/cgroup.procs)" ] && break
	sleep 0.1
done

export HOME=/home/user BERTH_SOCKET=/home/user/run/control.sock
conf <<EOT
%(conf)s
[server]
state_dir = /home/user/state
runtime_dir = /home/user/run
listen = 127.0.0.1:2223
EOT
as=as_user W=/home/user/state/sandboxes
begin user
try user
""" % {"conf": CONF}


@pytest.fixture(scope="module")
def said():
    """What the guest said, one value for each name."""
    lack = guest.lacks()
    if lack:
        pytest.skip(f"explained: no {lack}")
    if not IS_ROOT:
        pytest.skip("explained: the guest is the same for every user")
    out = guest.boot(SCRIPT)
    print("\n".join(out))
    return dict(line[1:].partition(" ")[::2]
                for line in out if line.startswith("@"))


@pytest.mark.timeout(240)
@pytest.mark.parametrize("who", ["root", "user"])
def test_limits_hold_and_a_sandbox_sleeps(said, who):
    """pids and cpu are threaded: a group that gives them to its children while
    it has processes itself keeps everybody out of these."""
    got = {name.removeprefix(who + "-"): value for name, value in said.items()
           if name.startswith(who + "-")}
    forks = got.pop("forks", "0")
    assert got == {
        "create": "0", "unenforced": "[]",
        "memory.max": str(48 << 20), "memory.swap.max": "0",
        "pids.max": "30", "cpu.max": "50000 100000",
        "bomb": "137", "reason": '"reason":"oom"',
        "suspend": "0", "phase": "suspended", "frozen": "frozen 1",
        "still": "yes", "resume": "0", "goes-on": "yes",
        "rm": "0", "left": "0",
    }
    assert int(forks) > 0
