#!/usr/bin/env bash
# ssh-up.sh FOLDER N [NET]: N machines of one's own on this one: network namespaces with an address and an
# sshd each, 10.NET.1.2 to 10.NET.N.2 (NET: 77 unless given). Writes FOLDER/config for ssh -F, by which they are
# called m1 to mN, and FOLDER/known with their key. ssh-down.sh FOLDER N [NET] ends them.
# Needs root, openssh-server, openssh-client and iproute2.
set -euo pipefail
base=$1 n=$2 net=${3:-77}
sshd=$(command -v sshd || echo /usr/sbin/sshd)
mkdir -p "$base/home" /run/sshd # a home of their own: what a login runs there may leave locks behind when it is killed
chmod 700 "$base"
[ -f "$base/key" ] || ssh-keygen -q -t ed25519 -N '' -f "$base/key"
[ -f "$base/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$base/host"
cp "$base/key.pub" "$base/authorized"
: >"$base/known"
: >"$base/config"
for k in $(seq 1 "$n"); do
	ns=s$net-$k
	ip netns add "$ns"
	ip link add "v$net-$k" type veth peer name "w$net-$k"
	ip link set "w$net-$k" netns "$ns"
	ip addr add "10.$net.$k.1/24" dev "v$net-$k"
	ip link set "v$net-$k" up
	ip netns exec "$ns" ip addr add "10.$net.$k.2/24" dev "w$net-$k"
	ip netns exec "$ns" ip link set "w$net-$k" up
	ip netns exec "$ns" ip link set lo up
	ip netns exec "$ns" ip route add default via "10.$net.$k.1"
	cat >"$base/sshd$k.conf" <<C
Port 22
ListenAddress 10.$net.$k.2
HostKey $base/host
AuthorizedKeysFile $base/authorized
PidFile $base/sshd$k.pid
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
MaxStartups 50:30:100
SetEnv HOME=$base/home
C
	ip netns exec "$ns" "$sshd" -f "$base/sshd$k.conf" -E "$base/sshd$k.log"
	echo "10.$net.$k.2 $(cut -d' ' -f1,2 "$base/host.pub")" >>"$base/known"
	cat >>"$base/config" <<C
Host m$k
	HostName 10.$net.$k.2
	User root
	IdentityFile $base/key
	IdentitiesOnly yes
	UserKnownHostsFile $base/known
C
done
for k in $(seq 1 "$n"); do # sshd writes its process id once it listens
	for _ in $(seq 1500); do [ -s "$base/sshd$k.pid" ] && break; sleep 0.02; done
	[ -s "$base/sshd$k.pid" ] || { echo "ssh-up.sh: sshd of m$k does not listen" >&2; tail -n 3 "$base/sshd$k.log" >&2; exit 1; }
done
sysctl -qw net.ipv4.ip_forward=1 2>/dev/null || true # machines of a gang reach each other through this one
