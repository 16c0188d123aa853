#!/usr/bin/env bash
# kube-up.sh FOLDER: a private Kubernetes cluster on this host for tests and the demo: etcd, API server, controller
# manager, scheduler, and kwok for simulated nodes, all in FOLDER and on ports of their own. Needs the programs that
# kube-build.sh builds, openssl and curl. Prints the line that makes it known. kube-down.sh FOLDER ends it.
#
#   PORT=16000   API server's port; the others, and those of real nodes (kube-node.sh), follow: 16 in all
#   KUBE_BIN     folder with the programs: that of .ci/run unless given
#   WATCH=1800   seconds after which the API server ends a watch, at the earliest; at the latest after twice as many
#   NODEDOWN=8   seconds after which a node that is silent is down
#
# Users: the administrator of FOLDER/kubeconfig, and whoever has a token of a ServiceAccount. Rights are RBAC's.
# A node with the label kwok.x-k8s.io/node=fake is simulated, and silent without it; kube-stages.yaml says how its pods
# fare.
# FOLDER/etc/NAME.sh begins the program NAME again, whose process id is in FOLDER/pids/NAME.pid.
set -euo pipefail
base=${1:?usage: kube-up.sh FOLDER}
port=${PORT:-16000} down=${NODEDOWN:-8}
bin=${KUBE_BIN:-${XDG_CACHE_HOME:-$HOME/.cache}/scrimp-ci/kube}
here=$(cd "$(dirname "$0")" && pwd)
for p in etcd kube-apiserver kube-controller-manager kube-scheduler kubectl kwok; do
	[ -x "$bin/$p" ] || { echo "kube-up.sh: $bin/$p is missing: test/kube-build.sh $bin builds it" >&2; exit 1; }
done
mkdir -p "$base"/{etc,log,pids,etcd}
base=$(cd "$base" && pwd)
cd "$base"
chmod 700 etc
echo "$port" >etc/port
echo "$bin" >etc/bin

# key NAME writes etc/NAME.key where it is not there yet.
key() { [ -s "etc/$1.key" ] || openssl ecparam -name prime256v1 -genkey -noout -out "etc/$1.key"; }
key api
key accounts
openssl ec -in etc/accounts.key -pubout -out etc/accounts.pub 2>/dev/null
addresses=$(ip -4 -o addr 2>/dev/null | sed -n 's#.* inet \([0-9.]*\)/.*#,IP:\1#p' | tr -d '\n')
gateways=$(for n in 0 1 2 3 4 5 6 7; do printf ',IP:100.%d.%d.%d' \
	$((64 + port / 16 * 8 / 512)) $((port / 16 * 8 / 2 % 256 + n / 2)) $((n % 2 * 128 + 1)); done)
[ -s etc/api.crt ] || openssl req -x509 -new -key etc/api.key -out etc/api.crt -days 30 -subj /CN=scrimp-test \
	-addext "subjectAltName=DNS:localhost,DNS:kubernetes.default.svc,IP:10.0.0.1$addresses$gateways"
[ -s etc/tokens.csv ] || echo "$(openssl rand -hex 16),admin,admin,system:masters" >etc/tokens.csv
token=$(cut -d, -f1 etc/tokens.csv)
cat >etc/kubeconfig <<C
apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: https://127.0.0.1:$port
    certificate-authority-data: $(base64 -w0 etc/api.crt)
users:
- name: admin
  user: {token: $token}
contexts:
- name: test
  context: {cluster: test, user: admin}
current-context: test
C
chmod 600 etc/kubeconfig
ln -sfn etc/kubeconfig kubeconfig

# program NAME COMMAND... begins it, by a script that begins it again.
program() {
	cat >"etc/$1.sh" <<C
cd "$base"
setsid $(printf '%q ' "${@:2}") >>"log/$1.log" 2>&1 </dev/null &
echo \$! >"pids/$1.pid"
C
	bash "etc/$1.sh"
}
# answers PATH reports whether the API server answers there.
answers() {
	curl -fsS --max-time 2 --cacert etc/api.crt -H "Authorization: Bearer $token" \
		"https://127.0.0.1:$port$1" >/dev/null 2>&1
}
# until_answers PATH NAME waits for it, and says what the program says where it does not.
until_answers() {
	for _ in $(seq 400); do
		answers "$1" && return
		kill -0 "$(cat "pids/$2.pid")" 2>/dev/null || break
		sleep 0.1
	done
	echo "kube-up.sh: no answer at $1" >&2
	tail -n 20 "log/$2.log" >&2
	exit 1
}

program etcd "$bin/etcd" --data-dir "$base/etcd" --unsafe-no-fsync --log-level warn \
	--listen-client-urls "http://127.0.0.1:$((port + 1))" --advertise-client-urls "http://127.0.0.1:$((port + 1))" \
	--listen-peer-urls "http://127.0.0.1:$((port + 2))" \
	--initial-advertise-peer-urls "http://127.0.0.1:$((port + 2))" \
	--initial-cluster "default=http://127.0.0.1:$((port + 2))"
# It listens on all addresses for the pods of real nodes, which reach this host by another than 127.0.0.1.
program kube-apiserver "$bin/kube-apiserver" --etcd-servers="http://127.0.0.1:$((port + 1))" \
	--bind-address=0.0.0.0 --advertise-address=127.0.0.1 --secure-port="$port" --endpoint-reconciler-type=none \
	--tls-cert-file=etc/api.crt --tls-private-key-file=etc/api.key --token-auth-file=etc/tokens.csv \
	--service-account-issuer=https://kubernetes.default.svc --service-account-key-file=etc/accounts.pub \
	--service-account-signing-key-file=etc/accounts.key --authorization-mode=Node,RBAC --allow-privileged=true \
	--service-cluster-ip-range=10.0.0.0/24 --watch-cache=true --min-request-timeout="${WATCH:-1800}" \
	--enable-admission-plugins=ResourceQuota --profiling=false --kubelet-preferred-address-types=InternalIP
until_answers /readyz kube-apiserver
program kube-controller-manager "$bin/kube-controller-manager" --kubeconfig=etc/kubeconfig --leader-elect=false \
	--bind-address=127.0.0.1 --secure-port="$((port + 3))" --cert-dir=etc/controller --root-ca-file=etc/api.crt \
	--service-account-private-key-file=etc/accounts.key --use-service-account-credentials=false \
	--node-monitor-period=1s --node-monitor-grace-period="${down}s" --kube-api-qps=200 --kube-api-burst=400 \
	--profiling=false
program kube-scheduler "$bin/kube-scheduler" --kubeconfig=etc/kubeconfig --leader-elect=false \
	--bind-address=127.0.0.1 --secure-port="$((port + 4))" --cert-dir=etc/scheduler
stages="$bin/kwok-stages/node"
program kwok "$bin/kwok" --kubeconfig=etc/kubeconfig --config="$here/kube-stages.yaml" \
	--config="$stages/fast/node-initialize.yaml" --config="$stages/heartbeat-with-lease/node-heartbeat-with-lease.yaml" \
	--manage-all-nodes=false --manage-nodes-with-label-selector=kwok.x-k8s.io/node=fake \
	--node-lease-duration-seconds="$down" --server-address="127.0.0.1:$((port + 5))" # renews it four times in that time
until_answers /api/v1/namespaces/default/serviceaccounts/default kube-controller-manager
echo "export KUBECONFIG=$base/kubeconfig"
