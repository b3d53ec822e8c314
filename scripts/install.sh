#!/bin/bash
# `make install`: programs, manual pages, systemd unit and sample configuration
# below DESTDIR. Never touches a configuration that is there; starts nothing.
set -euo pipefail
umask 022
cd "$(dirname "$0")/.."
: "${DESTDIR:=}" "${PREFIX:=/usr/local}" "${SYSCONFDIR:=/etc/berth}"
build=${BERTH_BUILD:-build}
generated=$(mktemp -d)
trap 'rm -rf "$generated"' EXIT

put() { # MODE FILE TARGET
	install -D -m "$1" "$2" "$DESTDIR$3"
}

put 0755 "$build/berthd" "$PREFIX/sbin/berthd"
put 0755 "$build/berth" "$PREFIX/bin/berth"
put 0755 "$build/berth-sshd" "$PREFIX/libexec/berth/berth-sshd"
put 0755 "$build/berth-session" "$PREFIX/libexec/berth/berth-session"
put 0755 "$build/berth-sandbox" "$PREFIX/libexec/berth/berth-sandbox"
put 0755 "$build/berth-archive" "$PREFIX/libexec/berth/berth-archive"

put 0644 docs/man/berth.1 "$PREFIX/share/man/man1/berth.1"
put 0644 docs/man/berthd.8 "$PREFIX/share/man/man8/berthd.8"
# the options of berth.conf(5) are the program's own table
"$build/berthd" --manual >"$generated/options"
sed -e "/^@OPTIONS@\$/{r $generated/options" -e 'd}' docs/man/berth.conf.5 \
	>"$generated/berth.conf.5"
put 0644 "$generated/berth.conf.5" "$PREFIX/share/man/man5/berth.conf.5"

"$build/berthd" --sample-config >"$generated/sample"
put 0644 "$generated/sample" "$SYSCONFDIR/berth.conf.sample"
for file in conf/providers/*.conf; do
	put 0644 "$file" "$SYSCONFDIR/providers/${file##*/}"
done

# /etc/berth/berth.conf needs no word, and may be absent
options=
[ "$SYSCONFDIR" = /etc/berth ] || options=" -c $SYSCONFDIR/berth.conf"
sed -e "s,@SBINDIR@,$PREFIX/sbin," -e "s,@OPTIONS@,$options," -e 1d \
	packaging/berthd.service >"$generated/berthd.service"
put 0644 "$generated/berthd.service" \
	"$PREFIX/lib/systemd/system/berthd.service"
put 0644 packaging/berth.sysusers "$PREFIX/lib/sysusers.d/berth.conf"

# a package makes the users itself, when it is installed
[ -n "$DESTDIR" ] || scripts/deps.sh users
