#!/usr/bin/env bash
# kube-down.sh FOLDER: ends what kube-up.sh and kube-node.sh started there, by their process ids.
set -u
base=$(cd "${1:?usage: kube-down.sh FOLDER}" && pwd) || exit 0
here=$(cd "$(dirname "$0")" && pwd)
for n in "$base"/nodes/*; do [ -d "$n" ] && bash "$here/kube-node.sh" -down "$base" "${n##*/}"; done
all=""
for name in kwok kube-scheduler kube-controller-manager kube-apiserver etcd; do
	pid=$(cat "$base/pids/$name.pid" 2>/dev/null) || continue
	cmd=$({ tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null)
	# and no later process of that number
	[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" = "$base" ] && [[ $cmd = */$name\ * ]] && all="$all $pid"
done
# Nothing of a cluster that ends is worth a graceful end. One that is stopped ends by this too.
for pid in $all; do kill -9 "$pid" 2>/dev/null; done
for _ in $(seq 50); do
	left=0
	for pid in $all; do [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null && left=1; done
	[ $left = 0 ] && break
	sleep 0.1
done
exit 0
