#!/usr/bin/env bash
# slurm-up.sh FOLDER: a private Slurm cluster on this host for tests and the demo: munged, slurmctld and eight slurmd,
# all in FOLDER and on ports of their own. Needs slurmctld, slurmd, slurm-client and munge, and nothing that they start
# by themselves: no systemd, no cgroups, no database. Prints the line that makes it known. slurm-down.sh FOLDER ends it.
#
#   PORT=26000   controller's port; the nodes' follow
#   GRACE=10     seconds between the notice of a preemption and its end
#   USERSIGNAL=1 a preemption signals batch scripts at its beginning too (preempt_send_user_signal); 0: at its end only
#   NODEDOWN=15  seconds after which a node that does not answer is down
#   REST=1       slurmrestd too, for this user, on FOLDER/rest.sock: needs slurmrestd
#   JWT=1        for who has a token (scontrol token) instead, on port PORT+8 of this host: needs slurm-wlm-jwt-plugin
#
# Partitions: ondemand (4 nodes with 4 GPUs each), spot (2), urgent (spot's nodes, and preempts spot), busy (1 node),
# short (ondemand's nodes for a minute at most), closed (down).
set -euo pipefail
base=${1:?usage: slurm-up.sh FOLDER}
port=${PORT:-26000} host=$(hostname -s)
export PATH="$PATH:/usr/sbin:/sbin"
for c in munged slurmctld slurmd sinfo; do
	command -v $c >/dev/null || { echo "slurm-up.sh: $c is missing: apt-get install slurmctld slurmd slurm-client munge" >&2; exit 1; }
done
mkdir -p "$base"/{state,log,spool,etc,munge/sock,pids,dev}
base=$(cd "$base" && pwd)
chmod 711 "$base/munge"; chmod 755 "$base/munge/sock"
[ -s "$base/munge/key" ] || { head -c 128 /dev/urandom > "$base/munge/key"; chmod 600 "$base/munge/key"; }

cat > "$base/etc/munge.sh" <<C
exec munged --force --key-file="$base/munge/key" --socket="$base/munge/sock/munge.sock" --pid-file="$base/pids/munged.pid" \\
	--log-file="$base/log/munged.log" --seed-file="$base/munge/seed" --num-threads=2
C
for i in 0 1 2 3; do ln -sfn /dev/null "$base/dev/nvidia$i"; done
signal=""
[ "${USERSIGNAL:-1}" = 1 ] && signal="SlurmctldParameters=preempt_send_user_signal"
jwt=""
if [ "${JWT:-0}" = 1 ]; then
	[ -s "$base/etc/jwt.key" ] || ( umask 077; head -c 32 /dev/urandom > "$base/etc/jwt.key" )
	jwt="AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=$base/etc/jwt.key"
fi
cat > "$base/etc/slurm.conf" <<C
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$(id -un)
SlurmdUser=$(id -un)
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket=$base/munge/sock/munge.sock
$jwt
$signal
StateSaveLocation=$base/state
SlurmdSpoolDir=$base/spool/%n
SlurmctldPidFile=$base/pids/slurmctld.pid
SlurmdPidFile=$base/pids/slurmd.%n.pid
SlurmctldLogFile=$base/log/slurmctld.log
SlurmdLogFile=$base/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=2,bf_interval=2,sched_min_interval=100000
KillWait=5
SlurmctldTimeout=30
SlurmdTimeout=${NODEDOWN:-15}
InactiveLimit=0
MinJobAge=300
TCPTimeout=5
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
SlurmdParameters=config_overrides
NodeName=ondemand[1-4] NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 1))-$((port + 4))] CPUs=8 RealMemory=4000 Gres=gpu:a100:4 State=UNKNOWN
NodeName=spot[1-2]     NodeHostname=$host NodeAddr=127.0.0.1 Port=[$((port + 5))-$((port + 6))] CPUs=8 RealMemory=4000 Gres=gpu:a100:4 State=UNKNOWN
NodeName=busy1         NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 7)) CPUs=4 RealMemory=2000 State=UNKNOWN
PartitionName=ondemand Nodes=ondemand[1-4] Default=YES MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=OFF
PartitionName=spot     Nodes=spot[1-2] MaxTime=INFINITE State=UP PriorityTier=1 PreemptMode=REQUEUE GraceTime=${GRACE:-10}
PartitionName=urgent   Nodes=spot[1-2] MaxTime=INFINITE State=UP PriorityTier=10 PreemptMode=OFF
PartitionName=busy     Nodes=busy1 MaxTime=1-00:00:00 State=UP PreemptMode=OFF
PartitionName=short    Nodes=ondemand[1-4] MaxTime=1 State=UP PreemptMode=OFF
PartitionName=closed   Nodes=ondemand[1-4] MaxTime=INFINITE State=DOWN PreemptMode=OFF
C
cat > "$base/etc/gres.conf" <<C
AutoDetect=off
NodeName=ondemand[1-4],spot[1-2] Name=gpu Type=a100 File=$base/dev/nvidia[0-3]
C
cat > "$base/etc/cgroup.conf" <<C
CgroupPlugin=cgroup/v1
C
# slurmrestd refuses to be root: in a namespace of its own it has another number, and is root to the others.
as=""
[ "$(id -u)" = 0 ] && as="unshare --user --map-user=1000 --map-group=1000"
cat > "$base/etc/slurmrestd.sh" <<C
if [ "${JWT:-0}" = 1 ]; then
	export SLURM_JWT=daemon
	set -- rest_auth/jwt 127.0.0.1:$((port + 8))
else
	rm -f "$base/rest.sock"
	set -- rest_auth/local "unix:$base/rest.sock"
fi
$as slurmrestd -f "$base/etc/slurm.conf" -a "\$1" -s openapi/v0.0.38 -t 4 "\$2" >> "$base/log/slurmrestd.log" 2>&1 < /dev/null &
echo \$! > "$base/pids/slurmrestd.pid"
for _ in \$(seq 100); do
	[ -S "$base/rest.sock" ] && exit
	[ "${JWT:-0}" = 1 ] && bash -c "exec 3<>/dev/tcp/127.0.0.1/$((port + 8))" 2>/dev/null && exit
	sleep 0.1
done
tail "$base/log/slurmrestd.log" >&2
exit 1
C
export SLURM_CONF="$base/etc/slurm.conf"
nodes="ondemand1 ondemand2 ondemand3 ondemand4 spot1 spot2 busy1"
sh "$base/etc/munge.sh" >> "$base/log/munged.out" 2>&1
slurmctld -f "$SLURM_CONF"
[ "${REST:-0}" = 1 ] && sh "$base/etc/slurmrestd.sh"
for n in $nodes; do mkdir -p "$base/spool/$n"; slurmd -f "$SLURM_CONF" -N "$n"; done
for _ in $(seq 150); do
	[ "$(timeout 2 sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" -ge 7 ] && break
	sleep 0.2
done
[ "$(timeout 2 sinfo -h -N -t idle -o %N | sort -u | wc -l)" -ge 7 ] || { sinfo -N >&2; tail "$base/log/slurmctld.log" >&2; exit 1; }
echo "export SLURM_CONF=$SLURM_CONF"
