#!/bin/sh
# A job on machines that are reached by ssh, all of them network namespaces of this one with a real sshd: the cable of
# its machine is pulled, it goes on elsewhere from what it saved, and the old machine counts no more when it is back.
#
# Usage: examples/demo-ssh.sh SCRIMP FOLDER   (make demo-ssh calls it, as root)
set -eu
scrimp=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
net=${NET:-76} machines=3
if [ "$(id -u)" != 0 ] || ! command -v ip >/dev/null || [ ! -x /usr/sbin/sshd ]; then
	echo "make demo-ssh makes machines of network namespaces: it needs root, and apt-get install openssh-server openssh-client iproute2" >&2
	exit 1
fi
mkdir -p "$2"
cd "$2"
base=$PWD data=$PWD/data
over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
	"$here/../test/ssh-down.sh" "$base/lab" "$machines" "$net"
}
trap 'over; exit 130' INT TERM
trap over EXIT
"$here/../test/ssh-down.sh" "$base/lab" "$machines" "$net"
rm -rf data work lab own
mkdir -p data work lab own

echo "1. Three machines with a real sshd each. The first look at them says what they have:"
"$here/../test/ssh-up.sh" "$base/lab" "$machines" "$net"
cat > data/engines.yaml <<Y
engines:
  - name: lab
    kind: ssh
    with:
      config: $base/lab/config
      folder: $base/own
      rate: 0.80
      marginal: 0.12
      hosts: [m1, m2, m3]
Y
"$scrimp" --data data engine test lab
"$scrimp" --data data market
cat > work/job.yaml <<'Y'
name: train
work: {steps: 120, time: 60s}
checkpoint: {dir: ck, interval: 2s}
progress: 'step=(?P<step>\d+)'
grace: 5s
command: |
  n=$(cat ck/n 2>/dev/null || echo 0)
  save() { echo $n > ck/n.tmp; mv ck/n.tmp ck/n; }
  trap 'save; exit 143' TERM
  echo "begins at step $n on $SCRIMP_INSTANCE"
  while [ $n -lt 120 ]; do
    n=$((n+1)); echo "step=$n"; sleep 0.5 & wait $!
    [ $((n%4)) = 0 ] && save
  done
  save
  echo "ends at step $n on $SCRIMP_INSTANCE"
Y
on() { "$scrimp" --data data status train --json | sed -n 's/.*"machine":"lab-m\([0-9]*\)-[0-9a-f]*".*/\1/p'; }

echo
echo "2. A job. After a while the cable of its machine is pulled:"
"$scrimp" --data data run -y --detach --force work/job.yaml
until "$scrimp" --data data logs train | grep -q step=20; do sleep 0.5; done
first=$(on)
pulled=$(date +%s)
ip link set "v$net-$first" down
echo "(the cable of m$first is out; for 20 s that would be no loss)"
until "$scrimp" --data data logs train | grep '^begins' | grep -qv "lab-m$first-"; do sleep 0.5; done
echo "(after $(($(date +%s) - pulled)) s it runs on m$(on); the cable of m$first is put back: what still runs there is ended)"
ip link set "v$net-$first" up
"$scrimp" --data data wait train --timeout 5m
"$scrimp" --data data logs train | grep -E '^(begins|ends)' || true
echo
"$scrimp" --data data receipt train
echo
echo "3. What the machines cost, used and unused:"
"$scrimp" --data data costs
