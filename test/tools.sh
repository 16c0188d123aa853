#!/usr/bin/env bash
# tools.sh FOLDER installs the real components that the component lane runs against: Debian's packages, and programs of
# other projects, which it builds into FOLDER once. Needs root, Debian, Go and git. It prints the environment that leads
# to them, one NAME=VALUE a line, as its last lines.
#
# Kubernetes takes longest. With KUBE_LIMIT=12m its build is given up after that time; then the last lines say
# SCRIMP_WITHOUT=kubernetes, and the next call goes on where this one stopped.
set -euo pipefail
tools=${1:?usage: tools.sh FOLDER}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$tools/bin"
tools=$(cd "$tools" && pwd)
export CGO_ENABLED=0

{
	need=""
	for p in openssh-server openssh-client iproute2 python3 python3-pip python3-venv python3-torch python3-onnx python3-optuna jupyter-notebook postgresql curl slurmctld \
		slurmd slurm-client slurmrestd slurm-wlm-jwt-plugin munge containerd runc containernetworking-plugins iptables \
		busybox-static openssl procps chromium; do
		dpkg -s "$p" >/dev/null 2>&1 || need="$need $p"
	done
	command -v npm >/dev/null || need="$need npm" # some packages of nodejs bring it along, and conflict with Debian's
	if [ -n "$need" ]; then
		apt-get update -q
		DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $need
	fi

	# tool NAME PACKAGE MODULE@VERSION builds a program of another project.
	tool() {
		[ -x "$tools/bin/$1" ] && return
		work=$(mktemp -d)
		(
			cd "$work"
			go mod init tool >/dev/null 2>&1
			go get "$2@${3##*@}" >/dev/null 2>&1 || go get "$3"
			go build -trimpath -ldflags "-s -w" -o "$work/built" "$2"
			mv "$work/built" "$tools/bin/$1" # whole, or not there
		)
		rm -rf "$work"
	}
	tool ec2-metadata-mock github.com/aws/amazon-ec2-metadata-mock/cmd github.com/aws/amazon-ec2-metadata-mock@v1.12.0
	tool versitygw github.com/versity/versitygw/cmd/versitygw github.com/versity/versitygw@v1.8.0
	tool fake-gcs-server github.com/fsouza/fake-gcs-server github.com/fsouza/fake-gcs-server@v1.56.1
	tool golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint github.com/golangci/golangci-lint/v2@v2.8.0
	azurite=3.37.0
	[ "$(cat "$tools/azurite/version" 2>/dev/null)" = "$azurite" ] || {
		npm install --no-fund --no-audit --ignore-scripts --prefix "$tools/azurite" "azurite@$azurite"
		echo "$azurite" >"$tools/azurite/version"
	}
	axe=4.14.1 # finds what keeps people from using a page
	[ "$(cat "$tools/axe/version" 2>/dev/null)" = "$axe" ] || {
		npm install --no-fund --no-audit --ignore-scripts --prefix "$tools/axe" "axe-core@$axe"
		echo "$axe" >"$tools/axe/version"
	}
	onnx=1.30.0 # the package has the library of ONNX Runtime for each platform: keep this one's
	[ "$(cat "$tools/onnxruntime/version" 2>/dev/null)" = "$onnx" ] || {
		rm -rf "$tools/onnxruntime"
		npm install --no-fund --no-audit --ignore-scripts --prefix "$tools/onnxruntime/npm" "onnxruntime-node@$onnx"
		mv "$tools"/onnxruntime/npm/node_modules/onnxruntime-node/bin/napi-v6/linux/"$(node -p process.arch)"/libonnxruntime.so.1 "$tools/onnxruntime/"
		rm -rf "$tools/onnxruntime/npm"
		echo "$onnx" >"$tools/onnxruntime/version"
	}
	# The linters' step says so where this one is missing: its module is not to be had everywhere.
	[ -x "$tools/bin/govulncheck" ] || GOBIN="$tools/bin" go install -trimpath golang.org/x/vuln/cmd/govulncheck@v1.1.4 || true

	without=""
	timeout "${KUBE_LIMIT:-0}" "$here/kube-build.sh" "$tools/kube" || {
		[ $? = 124 ] || exit 1
		without=kubernetes
	}
} >&2

cat <<END
PATH=$tools/bin:$PATH
SCRIMP_TOOLS=$tools
SCRIMP_EC2_METADATA_MOCK=$tools/bin/ec2-metadata-mock
SCRIMP_VERSITYGW=$tools/bin/versitygw
SCRIMP_FAKE_GCS_SERVER=$tools/bin/fake-gcs-server
SCRIMP_AZURITE=$tools/azurite/node_modules/.bin/azurite-blob
SCRIMP_AXE=$tools/axe/node_modules/axe-core/axe.min.js
SCRIMP_ONNXRUNTIME=$tools/onnxruntime/libonnxruntime.so.1
KUBE_BIN=$tools/kube
SCRIMP_WITHOUT=$without
END
