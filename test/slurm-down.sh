#!/usr/bin/env bash
# slurm-down.sh FOLDER: ends what slurm-up.sh started there: its jobs first, then its daemons, then what is left of steps, by their
# process ids.
set -u
base=$(cd "${1:?usage: slurm-down.sh FOLDER}" && pwd) || exit 0
export PATH="$PATH:/usr/sbin:/sbin" SLURM_CONF="$base/etc/slurm.conf"
if timeout 3 squeue -h -o %i >/dev/null 2>&1; then
	timeout 5 scancel --user="$(id -un)" 2>/dev/null
	for _ in $(seq 40); do
		[ -z "$(timeout 2 squeue -h -o %i 2>/dev/null)" ] && break
		sleep 0.1
	done
fi
all=""
for p in "$base"/pids/slurmd.*.pid "$base"/pids/slurmctld.pid "$base"/pids/slurmrestd.pid "$base"/pids/munged.pid; do
	pid=$(cat "$p" 2>/dev/null) || continue
	tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null | grep -qF "$base/" && all="$all $pid" # and no later process of that number
done
for pid in $all; do kill "$pid" 2>/dev/null; done
for _ in $(seq 50); do
	left=0
	for pid in $all; do [ -d "/proc/$pid" ] && ! grep -q '^State:.Z' "/proc/$pid/status" 2>/dev/null && left=1; done
	[ $left = 0 ] && break
	sleep 0.1
done
for pid in $all; do [ -d "/proc/$pid" ] && kill -9 "$pid" 2>/dev/null; done
# What steps of a slurmd that died by force go on with.
for file in $(grep -lzxF "SLURM_CONF=$base/etc/slurm.conf" /proc/[0-9]*/environ 2>/dev/null); do
	pid=${file#/proc/} pid=${pid%/environ}
	grep -qz '^SLURM_JOB_ID=' "$file" 2>/dev/null && kill -9 "$pid" 2>/dev/null
done
exit 0
