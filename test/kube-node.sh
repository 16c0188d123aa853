#!/usr/bin/env bash
# kube-node.sh FOLDER NAME: a real node of the cluster that kube-up.sh started in FOLDER: a machine of its own in
# namespaces of this one, with containerd and a kubelet. Eight may run side by side, and in clusters side by side.
# Needs root, containerd, runc, containernetworking-plugins, iproute2 and iptables.
#
#   GPUS=0     nvidia.com/gpu of the node; there are no devices behind them
#   LABELS=    a=b,c=d
#   TAINTS=    a=b:NoSchedule,c=d:NoExecute
#   PAUSE=     image archive of localhost/pause:1 (go run ./hack/kubeimage pause localhost/pause:1 FILE)
#
# kube-node.sh -import FOLDER NAME FILE...  imports image archives
# kube-node.sh -enter FOLDER NAME COMMAND...  runs a command on it, for example crictl or ps
# kube-node.sh -cut FOLDER NAME  takes it off the network, and -join puts it back: what runs there goes on meanwhile
# kube-node.sh -down FOLDER NAME  ends it at once, as a machine does whose power goes: nothing of it is left but its
#                                 folder, from which kube-node.sh begins it again, and its Node
#
# FOLDER/etc/kubelet.NAME.sh begins a kubelet again that was killed; containers go on meanwhile. Pods have addresses of
# 100.64.0.0/10 and reach this host by the one in FOLDER/nodes/NAME/host.
set -euo pipefail
verb=up
case ${1:-} in -*) verb=${1#-}; shift ;; esac
base=$(cd "${1:?usage: kube-node.sh FOLDER NAME}" && pwd)
name=${2:?usage: kube-node.sh FOLDER NAME}
shift 2
node="$base/nodes/$name" pidfile="$base/pids/node.$name.pid"
port=$(cat "$base/etc/port") bin=$(cat "$base/etc/bin")

# enter COMMAND... runs it on the machine.
enter() { nsenter --target "$(cat "$pidfile")" --mount --pid --net --uts "$@"; }
images() { for f in "$@"; do enter ctr -n k8s.io images import "$f" >/dev/null; done; }

# addresses sets those of the node: a block of 128, of which the first four are of the host and the machine, and those
# from 8 on are of pods.
addresses() {
	n=$(cat "$node/number")
	local block=$((port / 16 * 8 + n))
	net=100.$((64 + block / 512)).$((block / 2 % 256)) at=$((block % 2 * 128))
	link="kn$port-$n" host=$net.$((at + 1)) address=$net.$((at + 2)) gateway=$net.$((at + 4)) first=$net.$((at + 8))
}
join() {
	ip link set "$link" up
	ip route replace "$net.$at/25" via "$address"
}

# number is the node's among those of the cluster, and link and cgroup are named for it.
number() {
	mkdir -p "$node" "$base/numbers"
	[ -s "$node/number" ] && return
	for n in 0 1 2 3 4 5 6 7; do
		mkdir "$base/numbers/$n" 2>/dev/null && echo "$n" >"$node/number" && return
	done
	echo "kube-node.sh: a cluster has eight nodes at most" >&2
	exit 1
}

down() {
	local pid
	pid=$(cat "$pidfile" 2>/dev/null) || true
	# and no later process of that number
	if [ -n "$pid" ] && { tr '\0' ' ' <"/proc/$pid/cmdline"; } 2>/dev/null | grep -qF "$node/"; then
		kill -9 "$pid" 2>/dev/null || true # the first of its namespace: the kernel ends all that run there
		for _ in $(seq 100); do [ -d "/proc/$pid" ] || break; sleep 0.05; done
	fi
	rm -f "$pidfile" "$base/pids/kubelet.$name.pid" "$base/pids/containerd.$name.pid"
	[ -s "$node/number" ] || return 0
	addresses
	ip link del "$link" 2>/dev/null || true
	for _ in $(seq 20); do
		find /sys/fs/cgroup -depth -type d -path "*/scrimp-kube-$port-$n*" -exec rmdir {} + 2>/dev/null && return
		sleep 0.1 # one that has ended is held for a moment
	done
}

case $verb in
import) images "$@"; exit ;;
enter) enter "$@"; exit ;;
cut) addresses; ip link set "$link" down; exit ;;
join) addresses; join; exit ;;
down) down; exit ;;
esac

[ "$(id -u)" = 0 ] || { echo "kube-node.sh: needs root" >&2; exit 1; }
for c in containerd runc ctr ip iptables nsenter; do
	command -v $c >/dev/null || { echo "kube-node.sh: $c is missing: apt-get install containerd runc" \
		"containernetworking-plugins iproute2 iptables" >&2; exit 1; }
done
case $base/ in /run/* | /var/run/* | /var/lib/* | /var/log/*)
	echo "kube-node.sh: $base is in a folder that a node has of its own" >&2; exit 1 ;;
esac
number
down
addresses
mkdir -p "$node"/{lib,log,cni}
echo "$host" >"$node/host"
sed "s#server: .*#server: https://$host:$port#" "$base/etc/kubeconfig" >"$node/kubeconfig"
snapshotter=overlayfs
[ "$(stat -f -c %T "$node")" = overlayfs ] && snapshotter=native # one does not lie upon another
cat >"$node/containerd.toml" <<C
version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$node/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "$snapshotter"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
C
cat >"$node/cni/10.conflist" <<C
{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": {"type": "host-local",
 "ranges": [[{"subnet": "$net.$at/25", "gateway": "$gateway", "rangeStart": "$first"}]],
 "routes": [{"dst": "0.0.0.0/0"}]}}]}
C
taints=""
for t in $(tr , ' ' <<<"${TAINTS:-}"); do
	pair=${t%:*}
	value=${pair#*=}
	[ "$pair" = "${pair%%=*}" ] && value=""
	taints="$taints{key: ${pair%%=*}, value: \"$value\", effect: ${t##*:}},"
done
cat >"$node/kubelet.yaml" <<C
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
address: 0.0.0.0
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
cgroupDriver: cgroupfs
cgroupRoot: /scrimp-kube-$port-$n
cgroupsPerQOS: true
enforceNodeAllocatable: []
failCgroupV1: false
failSwapOn: false
evictionHard: {memory.available: "0%", nodefs.available: "0%", nodefs.inodesFree: "0%", imagefs.available: "0%"}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
nodeStatusUpdateFrequency: 2s
nodeLeaseDurationSeconds: 8
registerWithTaints: [${taints%,}]
resolvConf: ""
C
# The first process of the machine. It takes in what others leave behind, and ends with all of them.
cat >"$node/machine.sh" <<C
mount -t tmpfs tmpfs /run && mount --bind "$node/lib" /var/lib && mount --bind "$node/log" /var/log || exit 1
mkdir -p /run/lock
hostname "$name"
echo 1 >"$node/mounted"
while :; do sleep 1000000 & wait \$!; done
C
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
	echo "+cpuset +cpu +io +memory +pids" >/sys/fs/cgroup/cgroup.subtree_control || true
	mkdir -p "/sys/fs/cgroup/scrimp-kube-$port-$n"
else
	for c in /sys/fs/cgroup/*/; do mkdir -p "${c}scrimp-kube-$port-$n" 2>/dev/null || true; done
fi
rm -f "$node/mounted"
cd /
setsid unshare --mount --pid --net --uts --fork --kill-child --mount-proc \
	bash "$node/machine.sh" >>"$base/log/node.$name.log" 2>&1 </dev/null &
unshared=$!
for _ in $(seq 100); do [ -s "$node/mounted" ] && break; sleep 0.05; done
tr -d ' ' <"/proc/$unshared/task/$unshared/children" >"$pidfile"
[ -s "$node/mounted" ] && [ -s "$pidfile" ] || { tail "$base/log/node.$name.log" >&2; exit 1; }

ip link add "$link" type veth peer name eth0 netns "$(cat "$pidfile")"
ip addr add "$host/30" dev "$link"
join
{ echo 1 >/proc/sys/net/ipv4/ip_forward; } 2>/dev/null || true # pods of two nodes reach each other through this host
enter ip link set lo up
enter ip addr add "$address/30" dev eth0
enter ip link set eth0 up
enter ip route add default via "$host"
enter sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
for chain in PREROUTING OUTPUT; do # the Service kubernetes, without kube-proxy
	enter iptables -w -t nat -A $chain -d 10.0.0.1 -p tcp --dport 443 -j DNAT --to-destination "$host:$port"
done

# program NAME COMMAND... begins it on the machine, by a script that begins it again.
program() {
	cat >"$base/etc/$1.$name.sh" <<C
cd /
machine=\$(cat "$pidfile") # before: the first child below is the program
setsid nsenter --target "\$machine" --mount --pid --net --uts \\
	$(printf '%q ' "${@:2}") >>"$base/log/$1.$name.log" 2>&1 </dev/null &
for _ in \$(seq 100); do
	pid=\$(tr -d ' ' <"/proc/\$!/task/\$!/children" 2>/dev/null)
	[ -n "\$pid" ] && break
	sleep 0.02
done
echo "\$pid" >"$base/pids/$1.$name.pid"
C
	bash "$base/etc/$1.$name.sh"
}
program containerd containerd -c "$node/containerd.toml"
for _ in $(seq 100); do enter ctr version >/dev/null 2>&1 && break; sleep 0.1; done
[ -z "${PAUSE:-}" ] || images "$PAUSE"
program kubelet "$bin/kubelet" --config="$node/kubelet.yaml" --kubeconfig="$node/kubeconfig" \
	--hostname-override="$name" --node-ip="$address" --node-labels="${LABELS:-}"
export KUBECONFIG="$base/kubeconfig"
for _ in $(seq 200); do
	"$bin/kubectl" wait --for=condition=Ready --timeout=20s "node/$name" >/dev/null 2>&1 && break
	kill -0 "$(cat "$base/pids/kubelet.$name.pid")" 2>/dev/null || { tail "$base/log/kubelet.$name.log" >&2; exit 1; }
	sleep 0.1
done
[ "${GPUS:-0}" = 0 ] || "$bin/kubectl" patch node "$name" --subresource=status --type=merge \
	-p "status: {capacity: {nvidia.com/gpu: \"$GPUS\"}, allocatable: {nvidia.com/gpu: \"$GPUS\"}}" >/dev/null
