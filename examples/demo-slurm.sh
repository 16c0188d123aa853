#!/bin/sh
# A job on a real Slurm cluster, all of it on this machine: a more urgent job of the cluster takes its node, it saves within
# the notice, waits its turn or takes a dearer partition, and goes on from what it saved.
#
# Usage: examples/demo-slurm.sh SCRIMP FOLDER   (make demo-slurm calls it)
set -eu
scrimp=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$2"
cd "$2"
base=$PWD data=$PWD/data
over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
	"$here/../test/slurm-down.sh" "$base/cluster"
}
trap 'over; exit 130' INT TERM
trap over EXIT
[ -d cluster ] && "$here/../test/slurm-down.sh" "$base/cluster"
rm -rf data work cluster
mkdir -p data work cluster

echo "1. A Slurm cluster of seven nodes on this machine: spot may be preempted, ondemand may not."
GRACE=8 "$here/../test/slurm-up.sh" "$base/cluster"
export SLURM_CONF="$base/cluster/etc/slurm.conf"
sinfo

cat > data/engines.yaml <<Y
engines:
  - name: hpc
    kind: slurm
    with:
      scratch: $base/cluster/scratch
      partitions:
        - {name: spot, rate: 1.20}
        - {name: ondemand, rate: 3.60}
Y
cat > work/job.yaml <<'Y'
name: train
work: {steps: 40, time: 20s}
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; echo "saved=$n"; }
  trap 'save; exit 143' TERM
  echo "begins at step $n on $SCRIMP_INSTANCE"
  while [ $n -lt 40 ]; do n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!; done
  save
Y
echo
echo "2. A job, on the cheapest partition. After a while somebody else needs its node more:"
"$scrimp" --data data run -y --detach --force work/job.yaml
until "$scrimp" --data data logs train | grep -q step=8; do sleep 0.5; done
sbatch --quiet --partition=urgent --nodes=2 --exclusive --output=/dev/null --wrap="sleep 20"
echo "(submitted: an urgent job on both nodes of spot)"
"$scrimp" --data data wait train --timeout 5m
"$scrimp" --data data logs train | grep -E '^(begins|saved)' || true
echo
"$scrimp" --data data receipt train
