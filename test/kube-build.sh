#!/usr/bin/env bash
# Builds a real control plane of Kubernetes, its kubelet, etcd, kwok (simulated nodes) and helm from the module
# proxy into a folder, where they are not there yet: kube-build.sh FOLDER
# About ten minutes of two processors and 700 MB; nothing is built twice.
set -euo pipefail
bin=${1:?usage: kube-build.sh FOLDER}
mkdir -p "$bin"
bin=$(cd "$bin" && pwd)
kubernetes=34.4 etcd=v3.6.5 kwok=v0.8.0 helm=v3.19.0
exec 9>"$bin/lock" && flock 9 # two that build at once would each take twice the time
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GOFLAGS=-mod=mod CGO_ENABLED=0

# there reports whether a program of that version was built.
there() { [ -x "$bin/$1" ] && [ "$(cat "$bin/$1.version" 2>/dev/null)" = "$2" ]; }

missing=""
for p in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
	there "$p" "$kubernetes" || missing="$missing $p"
done
if [ -n "$missing" ]; then
	mkdir "$work/kubernetes" && cd "$work/kubernetes"
	go mod init scratch/kubernetes >/dev/null 2>&1
	mod=$(go mod download -json "k8s.io/kubernetes@v1.$kubernetes" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
	# the staging modules of that version, which its own go.mod has as folders
	sed -nE 's#^\s*(replace )?(k8s.io/[a-z0-9-]*) => ./staging/.*#\2#p; s#^\s*(k8s.io/[a-z0-9-]*) v0.0.0\s*$#\1#p' "$mod" |
		sort -u | while read -r m; do go mod edit -replace "$m=$m@v0.$kubernetes"; done
	go mod edit -require "k8s.io/kubernetes@v1.$kubernetes"
	for p in $missing; do
		go build -trimpath -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v1.$kubernetes" \
			-o "$bin/$p" "k8s.io/kubernetes/cmd/$p"
		echo "$kubernetes" >"$bin/$p.version"
	done
fi

# other NAME PACKAGE MODULE VERSION builds a program of another module, and leaves its folder in $work/NAME.
other() {
	mkdir "$work/$1" && cd "$work/$1"
	go mod init "scratch/$1" >/dev/null 2>&1
	go get "$2@$4" >/dev/null 2>&1 || go get "$3@$4"
	go build -trimpath -ldflags "-s -w" -o "$bin/$1" "$2"
	echo "$4" >"$bin/$1.version"
}
there etcd "$etcd" || other etcd go.etcd.io/etcd/server/v3 go.etcd.io/etcd/server/v3 "$etcd"
there helm "$helm" || other helm helm.sh/helm/v3/cmd/helm helm.sh/helm/v3 "$helm"
if ! there kwok "$kwok" || [ ! -d "$bin/kwok-stages" ]; then
	other kwok sigs.k8s.io/kwok/cmd/kwok sigs.k8s.io/kwok "$kwok"
	cp -r "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage" "$bin/kwok-stages"
	chmod -R u+w "$bin/kwok-stages"
fi
