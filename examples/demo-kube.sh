#!/bin/sh
# A job on a real Kubernetes cluster, all of it on this machine: a control plane, and two nodes with a kubelet and
# containerd. Its pod is evicted, it saves within its grace, and goes on on the other node from what it saved.
#
# Usage: examples/demo-kube.sh SCRIMP FOLDER   (make demo-kube calls it)
set -eu
scrimp=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
needs() { echo "demo-kube: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || needs "nodes are namespaces of this machine, which need root: sudo make demo-kube"
for c in containerd runc ctr ip iptables nsenter openssl curl busybox /usr/lib/cni/ptp; do
	command -v "$c" >/dev/null || needs "$c is missing: apt-get install containerd runc containernetworking-plugins" \
		"iproute2 iptables busybox-static openssl curl"
done
KUBE_BIN=${KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/scrimp-ci/kube}
export KUBE_BIN
for p in etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl kwok; do
	[ -x "$KUBE_BIN/$p" ] && continue
	echo "$KUBE_BIN/$p is missing: building Kubernetes 1.34, once: about ten minutes of two cores, and 700 MB ..."
	"$here/../test/kube-build.sh" "$KUBE_BIN"
	break
done
mkdir -p "$2"
cd "$2"
base=$PWD data=$PWD/data
over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
	[ -d "$base/cluster" ] && "$here/../test/kube-down.sh" "$base/cluster"
}
trap 'over; exit 130' INT TERM
trap over EXIT
[ -d cluster ] && "$here/../test/kube-down.sh" "$base/cluster"
rm -rf data work cluster
mkdir -p data work cluster

echo "1. A Kubernetes cluster on this machine, and two nodes with the label pool=spot."
PORT=${PORT:-9600} "$here/../test/kube-up.sh" "$base/cluster" >/dev/null
kubeconfig=$base/cluster/kubeconfig
kubectl() { "$KUBE_BIN/kubectl" --kubeconfig "$kubeconfig" "$@"; }
image() { (cd "$here/.." && "${GO:-go}" run ./hack/kubeimage "$@"); }
image pause localhost/pause:1 "$base/cluster/pause.tar"
image shell localhost/user:1 "$base/cluster/user.tar"
image agent localhost/scrimp:1 "$base/cluster/scrimp.tar" "$scrimp"
for n in spot-1 spot-2; do
	PAUSE=$base/cluster/pause.tar LABELS=pool=spot "$here/../test/kube-node.sh" "$base/cluster" $n
	"$here/../test/kube-node.sh" -import "$base/cluster" $n "$base/cluster/user.tar" "$base/cluster/scrimp.tar"
done
kubectl get nodes -L pool

port=${LISTEN:-7979}
host=$(cat cluster/nodes/spot-1/host) # by which pods reach this machine
"$scrimp" --data data engine add k8s --kind kubernetes --agents "http://$host:$port" --with "
kubeconfig: $kubeconfig
image: localhost/user:1
agent_image: localhost/scrimp:1
pools:
  - {name: spot, capacity: spot, rate: 1.20, cpus: 1, memory: 256MiB, grace: 20s, selector: {pool: spot}}"
"$scrimp" --data data serve --listen "$host:$port" --insecure >data/serve.log 2>&1 &
for _ in $(seq 100); do "$scrimp" --data data server status >/dev/null 2>&1 && break; sleep 0.1; done

cat > work/job.yaml <<'Y'
name: train
any_of: [k8s]
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
echo "2. A job, in a pod. After a while its node is drained, as an autoscaler does:"
"$scrimp" --data data run -y --detach --force work/job.yaml
until "$scrimp" --data data logs train | grep -q step=8; do sleep 0.5; done
node=$(kubectl get pods -l batch.kubernetes.io/job-name -o 'jsonpath={.items[0].spec.nodeName}')
kubectl drain "$node" --force --ignore-daemonsets --delete-emptydir-data --timeout=60s
"$scrimp" --data data wait train --timeout 5m
"$scrimp" --data data logs train | grep -E '^(begins|saved)' || true
echo
"$scrimp" --data data receipt train
