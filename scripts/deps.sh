#!/bin/bash
# Makes sure that the Debian packages (12 and 13) which berth needs are there.
# Silent and instant when they are. Otherwise installs them with apt-get, as
# root or through `sudo -n`; failing that prints the command to type, exit 1.
# As root it also makes the system users that berthd runs things as.
#
# Usage: deps.sh run | test | guest | long | engines | fuzz | bench | users
set -euo pipefail
PATH=$PATH:/usr/sbin:/sbin
export LC_ALL=C

# "a|b" means: either will do, the first one that this Debian knows is taken.
run_packages=(
	gcc make 'pkg-config|pkgconf' libssh-dev libsodium-dev libsqlite3-dev
	libinih-dev libevent-dev libjansson-dev libutf8proc-dev libzstd-dev
	libarchive-dev
	openssh-sftp-server openssh-client
)
test_packages=(
	libcmocka-dev clang-format clang-tidy cppcheck shellcheck tmux asciinema
	dropbear-bin putty-tools python3 python3-paramiko python3-asyncssh
	python3-pytest python3-pytest-timeout python3-pytest-xdist rsync git jq
	libtsm-dev lftp sshfs ansible-core
	netcat-openbsd procps sqlite3 util-linux e2fsprogs
)
long_packages=(valgrind dpkg-dev)
fuzz_packages=(clang 'libclang-rt-dev|libclang-rt-14-dev')

# A kernel and what boots it: tests of cgroup v2 are skipped without.
guest_packages=(qemu-system-x86 busybox-static cpio linux-image-cloud-amd64)

# Daemons that start when they are installed: only for who asks for them.
engine_packages=(docker.io podman runc lxd lxd-client busybox-static)
bench_packages=(
	openssh-server libtsm-dev python3 rsync git tmux dtach
	bubblewrap runc busybox-static zstd
)

usage() {
	echo "usage: scripts/deps.sh run | test | guest | long | engines |" \
		"fuzz | bench | users" >&2
	exit 2
}

# Prints the entries of the list that no installed package satisfies.
missing() {
	local entry installed found name names
	mapfile -t names < <(printf '%s\n' "$@" | tr '|' '\n')
	# dpkg-query fails when it does not know one of the names: no matter
	installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' \
		"${names[@]}" 2>/dev/null | sed -n 's/^installed //p') || :
	for entry; do
		found=
		for name in ${entry//|/ }; do
			case $'\n'$installed$'\n' in
			*$'\n'"$name"$'\n'*) found=1 ;;
			esac
		done
		[ -n "$found" ] || printf '%s\n' "$entry"
	done
}

# Prints the package to install for each entry of the list.
choose() {
	local entry name chosen
	for entry; do
		chosen=${entry%%|*}
		for name in ${entry//|/ }; do
			if apt-cache show "$name" >/dev/null 2>&1; then
				chosen=$name
				break
			fi
		done
		printf '%s\n' "$chosen"
	done
}

apt() {
	# a kernel that only tests boot needs no initial file system
	"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive INITRD=No apt-get \
		-y -q \
		-o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}

# Installs what the arguments name, or says how.
install_packages() {
	local lack names
	mapfile -t lack < <(missing "$@")
	[ ${#lack[@]} -gt 0 ] || return 0

	as_root=()
	if [ "$(id -u)" != 0 ]; then
		if ! sudo -n true >/dev/null 2>&1; then
			mapfile -t names < <(choose "${lack[@]}")
			echo "berth needs packages that are not installed. As root:"
			echo "  apt-get install -y --no-install-recommends ${names[*]}"
			exit 1
		fi
		as_root=(sudo -n)
	fi >&2
	# stale or missing lists of one source need not matter: install decides
	apt update || echo "deps.sh: apt-get update failed, going on" >&2
	mapfile -t names < <(choose "${lack[@]}")
	apt install --no-install-recommends "${names[@]}"

	mapfile -t lack < <(missing "$@")
	if [ ${#lack[@]} -gt 0 ]; then
		echo "deps.sh: still missing after apt-get: ${lack[*]}" >&2
		exit 1
	fi
}

# berth-box owns what runs in local sandboxes, berth-net faces the network,
# berth keeps sessions.
make_users() {
	local name
	[ "$(id -u)" = 0 ] || return 0
	for name in berth berth-box berth-net; do
		getent passwd "$name" >/dev/null && continue
		useradd --system --user-group --no-create-home \
			--home-dir /nonexistent --shell /usr/sbin/nologin "$name"
	done
}

[ $# -eq 1 ] || usage
case $1 in
run) wanted=("${run_packages[@]}") ;;
test) wanted=("${run_packages[@]}" "${test_packages[@]}") ;;
long)
	wanted=("${run_packages[@]}" "${test_packages[@]}"
		"${long_packages[@]}")
	;;
guest) wanted=("${guest_packages[@]}") ;;
engines) wanted=("${engine_packages[@]}") ;;
fuzz) wanted=("${run_packages[@]}" "${fuzz_packages[@]}") ;;
bench) wanted=("${run_packages[@]}" "${bench_packages[@]}") ;;
users) wanted=() ;;
*) usage ;;
esac

if [ ${#wanted[@]} -gt 0 ]; then
	if ! command -v dpkg-query >/dev/null; then
		echo "deps.sh: no Debian here. Install what these packages hold," \
			"then type 'make all':" "${wanted[@]}" >&2
		exit 1
	fi
	install_packages "${wanted[@]}"
fi
make_users
