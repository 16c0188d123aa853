#!/bin/sh
# A job on spot machines of a cloud that answers as EC2 does, all of it on this machine: an instance is processes in
# namespaces of their own that run the user data, fetch the agent and show the server who they are. The cloud takes the
# first machine; the job saves at the notice, goes on on another one, and the receipt is held against the cloud's bill.
#
# Usage: examples/demo-aws.sh SCRIMP TRAINER FOLDER   (make demo-aws calls it)
set -eu
scrimp=$(readlink -f "$1") trainer=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
needs() { echo "demo-aws: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || needs "instances are namespaces of this machine, which need root: sudo make demo-aws"
for c in ip unshare nsenter curl; do
	command -v "$c" >/dev/null || needs "$c is missing: apt-get install iproute2 util-linux curl"
done
tools=${XDG_CACHE_HOME:-$HOME/.cache}/scrimp-ci/bin
mock=${SCRIMP_EC2_METADATA_MOCK:-$tools/ec2-metadata-mock}
if [ ! -x "$mock" ]; then
	echo "Building the metadata service of instances, once: half a minute ..."
	mkdir -p "$tools"
	work=$(mktemp -d)
	(cd "$work" && go mod init tool >/dev/null 2>&1 && go get github.com/aws/amazon-ec2-metadata-mock@v1.12.0 >/dev/null 2>&1 &&
		CGO_ENABLED=0 go build -o "$mock" github.com/aws/amazon-ec2-metadata-mock/cmd)
	rm -rf "$work"
fi
export SCRIMP_EC2_METADATA_MOCK="$mock"
mkdir -p "$3"
cd "$3"
base=$PWD data=$PWD/data cloud=
over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
	[ -n "$cloud" ] && kill "$cloud" && wait "$cloud" || true
}
trap 'over; exit 130' INT TERM
trap over EXIT
rm -rf data work cloud
mkdir -p data work cloud

echo "1. A cloud on this machine that answers as EC2 does, 20 times as fast; doctor aws tries what machines need there."
(cd "$here/.." && "${GO:-go}" build -o "$base/awscloud" ./hack/awscloud)
"$base/awscloud" --listen "127.0.0.1:${CLOUD:-8299}" --dir "$base/cloud" --machines --scale 20 --pending 0s --net "${NET:-10.231.0.0/16}" >cloud.env &
cloud=$!
for _ in $(seq 100); do grep -q CERTIFICATE cloud.env && break; sleep 0.1; done
. ./cloud.env
unset AWS_PROFILE AWS_SESSION_TOKEN
port=${LISTEN:-7989}
cat >data/engines.yaml <<Y
engines:
  - name: aws
    kind: aws
    agents: http://$AWSCLOUD_HOST:$port
    with:
      region: $AWS_REGION
      endpoint: $AWS_ENDPOINT_URL
      certificate: $AWSCLOUD_CERTIFICATE
      types: [c7i.xlarge]
      image: ami-0000000000000a64a
      disk: 20GiB
      disk_rate: 0.08
    timing: {poll: 1s, sweep: 10s, start: 5s}
Y
"$scrimp" --data data serve --listen "$AWSCLOUD_HOST:$port" --insecure >data/serve.log 2>&1 &
for _ in $(seq 100); do "$scrimp" --data data server status >/dev/null 2>&1 && break; sleep 0.1; done
"$scrimp" --data data doctor aws
"$scrimp" --data data market

cp "$trainer" work/chargpt
cp "$here/chargpt/job.yaml" work/
STEPS=$("$trainer" --calibrate 20s)
order() { curl -sS --fail-with-body -H "Authorization: Bearer $AWSCLOUD_TOKEN" -d "$2" "$AWS_ENDPOINT_URL/_test/$1"; }
echo
echo "2. A job on spot machines. After a while the cloud takes its machine, with a notice of six seconds."
(cd work && "$scrimp" --data "$data" run -y --detach --force --env STEPS="$STEPS" --env GOROOT="$(go env GOROOT)" job.yaml)
until "$scrimp" --data data logs chargpt 2>/dev/null | grep -q 'step [0-9][0-9][0-9]*/'; do sleep 0.3; done
id=$(order instances '{}' | grep -o 'i-[0-9a-f]*' | head -1)
order interrupt "{\"instance\":\"$id\"}" >/dev/null
"$scrimp" --data data wait chargpt --timeout 5m
echo
"$scrimp" --data data receipt chargpt
echo
echo "3. What the cloud bills, in dollars: machines (those that it took in their first hour cost nothing) and disks."
order bill '{}' >cloud/bill.json
"$base/awscloud" -sum cloud/bill.json
