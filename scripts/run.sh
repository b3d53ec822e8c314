#!/bin/bash
# `make run`: berthd with conf/dev.conf, all its state under ./var, and a demo
# key, so that one ssh line is all that is left to type. Keeps what is there.
set -euo pipefail
umask 077
cd "$(dirname "$0")/.."
root=$PWD
options=()

# As root, local sandboxes belong to the user berth-box, who must be able to
# pass through ./var to its workspace; berthd's own state is in ./var/state,
# which stays 0700. As anybody else nobody has to pass.
mkdir -p var
if [ "$(id -u)" = 0 ]; then
	chmod 0711 var
	if ! setpriv --reuid=berth-box --regid=berth-box --clear-groups \
		test -x "$root/var" 2>/dev/null; then
		# a checkout in a private home: the workspaces have to go elsewhere
		options+=(-o sandbox.dir=/var/lib/berth-dev-sandboxes)
		echo "$root is closed to the user berth-box:" \
			"sandboxes are in /var/lib/berth-dev-sandboxes"
	fi
else
	chmod 0700 var
fi

if [ ! -f var/demo_key ]; then
	rm -f var/demo_key.pub
	ssh-keygen -q -t ed25519 -N '' -C demo -f var/demo_key
fi
key=$(ssh-keygen -y -f var/demo_key | cut -d' ' -f1,2)
touch var/authorized_keys
if ! grep -qF "$key" var/authorized_keys; then
	printf 'role="owner",admin %s demo\n' "$key" >>var/authorized_keys
fi

quoted=$(printf '%q' "$root")
cat <<EOT

Type this in another terminal, and once more in a third to share the session:

  ssh -i $quoted/var/demo_key -p 2222 -o IdentitiesOnly=yes \\
    -o UserKnownHostsFile=$quoted/var/known_hosts \\
    -o StrictHostKeyChecking=accept-new demo+default@127.0.0.1

Administration, from here: export BERTH_SOCKET=$quoted/var/run/control.sock
then build/berth ls, build/berth who, build/berth rec ls. Ctrl-C stops berthd.

EOT
exec "${BERTH_BUILD:-build}/berthd" -c conf/dev.conf ${options[@]+"${options[@]}"}
