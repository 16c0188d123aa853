#!/usr/bin/env bash
# ssh-down.sh FOLDER N [NET]: ends what ssh-up.sh began, and what runs there.
set -u
base=$1 n=$2 net=${3:-77}
for k in $(seq 1 "$n"); do
	for p in $(ip netns pids "s$net-$k" 2>/dev/null); do kill -9 "$p" 2>/dev/null; done
	ip link del "v$net-$k" 2>/dev/null
	ip netns del "s$net-$k" 2>/dev/null
	rm -f "$base/sshd$k.pid"
done
exit 0
