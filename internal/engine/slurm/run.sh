#!/bin/bash
# An allocation of scrimp: an agent on each node, a step that hears Slurm's signals, and the end of all. The lines above
# this one say what for; nothing in it is secret.
umask 077
say() { echo "scrimp: $(date -u +%FT%TZ) $(hostname -s): $*" >&2; }
# fail ends it, and says that the node is at fault, unless the job was told to end: that ends what runs, a mkdir for one.
fail() { say "$*"; [ -n "$told" ] || echo "$(hostname -s): $*" > "$dir/failed"; exit 1; }

# reach waits until the server's address answers: a node that does not see it costs money for nothing.
reach() {
	local rest host port
	case $server in
	unix://*)
		[ -d "$(dirname "${server#unix://}")" ] || fail "it does not see the server's socket ${server#unix://}: write agents: listen, or a URL, for the engine"
		return ;;
	esac
	[ -n "${HTTP_PROXY}${HTTPS_PROXY}${http_proxy}${https_proxy}" ] && return
	rest=${server#*://} rest=${rest%%/*} host=${rest%:*} port=${rest##*:}
	[ "$host" = "$rest" ] && { port=443; [ "${server%%:*}" = http ] && port=80; }
	host=${host#[} host=${host%]}
	for _ in 1 2 3 4 5 6; do
		timeout 5 bash -c "exec 3<>/dev/tcp/$host/$port" 2>/dev/null && return
		sleep 5
	done
	fail "it cannot reach the server at $server: write an address for agents that nodes reach, and open its port"
}

# end_of waits until a process has ended, whatever signals come meanwhile.
end_of() {
	local status=0
	while kill -0 "$1" 2>/dev/null; do wait "$1"; status=$?; done
	return $status
}

# machine makes the folder of a rank's machine on this node's disk, and removes what killed ones have left there.
machine() {
	local top=${scratch:-${TMPDIR:-/tmp}}/scrimp-$(id -u) left
	mkdir -p "$top" && chmod 711 "$top" && [ -O "$top" ] || fail "$top is not ours: set scratch for the engine"
	for left in "$top/$engine"-*/; do
		[ -s "$left/pid" ] && ! kill -0 "$(cat "$left/pid")" 2>/dev/null && rm -rf "$left"
	done
	instance=$engine-$SLURM_JOB_ID-$1 home=$top/$engine-$SLURM_JOB_ID-$1
	mkdir "$home" "$home/agent" || fail "it cannot make $home: is its disk full?"
	mv "$dir/token.$1" "$home/agent/bootstrap.token" || fail "the token of rank $1 is not there"
}

# agent starts the agent in a machine's folder, without what Slurm says of the allocation: a program would take it for its own.
agent() {
	local v
	for v in $(env | sed -n 's/^\(\(SLURM\|SBATCH\|SRUN\|PMI\|PMIX\|OMPI\)[A-Za-z0-9]*_[A-Za-z0-9_]*\)=.*/\1/p'); do unset "$v"; done
	unset SLURM_JOBID SLURMD_NODENAME ENVIRONMENT
	export SCRIMP_SERVER="$server" SCRIMP_TASK_USER="$users" SCRIMP_INSTANCE_ID="$instance" SCRIMP_MACHINE_DIR="$home"
	export SCRIMP_NOTICE="$notice" SCRIMP_TERM_ONCE=1
	cd "$home" && exec "$exe" agent
}

case $1 in
notice) # a step of its own: Slurm signals steps at the beginning of a preemption's grace, and scripts only where it is set to
	trap ': > "$2"; exit 0' TERM
	while :; do sleep 3600 & wait $!; done ;;
rank)
	reach
	machine "$2"
	trap : TERM # reaches the agent too
	agent & echo $! > "$home/pid"
	end_of $!
	status=$?
	rm -rf "$home"
	exit $status ;;
esac

# The same request may have been submitted twice, where an answer was lost: the first job that starts has it.
mkdir "$dir/claim" 2>/dev/null || { say "job $SLURM_JOB_ID: the request runs in another job, or ran in this one"; exit 0; }
[ -e "$dir/cancelled" ] && { say "job $SLURM_JOB_ID: the request was given up"; exit 0; }
echo "$SLURM_JOB_ID" > "$dir/claim/job"

told="" over="" agent=""
tell() {
	[ -n "$told$over" ] && return
	told=1
	date +%s > "$dir/notice"
	[ -n "$agent" ] && kill -TERM "$agent" 2>/dev/null
}
trap tell TERM
trap '[ -n "$agent" ] && kill -KILL "$agent" 2>/dev/null' USR2 # rank 0 is given back before the others

# given ends a rank that is given back before the others, where the server cannot signal steps: it leaves a file.
given() {
	local step
	[ -n "$watch" ] || return
	trap : TERM
	while kill -0 "$2" 2>/dev/null; do
		if [ -e "$dir/given.$1" ] && [ "$1" = 0 ]; then
			kill -KILL "$2" 2>/dev/null
		elif [ -e "$dir/given.$1" ]; then
			step=$(squeue --noheader --steps --jobs="$SLURM_JOB_ID" --format='%i %j' | sed -n "s/ rank-$1\$//p")
			[ -n "$step" ] && scancel --signal=KILL "$step" && scancel "$step" # srun waits for ever for one that is killed as it begins
		fi
		sleep 1
	done
}

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
ranks=()
for ((k = 1; k < ${#nodes[@]}; k++)); do
	{
		srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[k]}" --job-name="rank-$k" --output="$dir/console.$k.log" \
			--open-mode=append bash "$dir/run.sh" rank "$k" < /dev/null
		date +%s > "$dir/end.$k"
	} &
	ranks+=($!)
	given "$k" "$!" &
done
reach
machine 0
{
	srun --overlap --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" --mem=0 --gres=none --job-name=notice --output=/dev/null \
		bash "$dir/run.sh" notice "$home/told" < /dev/null
	[ -e "$home/told" ] && kill -TERM $$
} 2>/dev/null &
listener=$!
agent & agent=$!
echo "$agent" > "$home/pid"
given 0 "$agent" &
[ -n "$told" ] && kill -TERM "$agent" 2>/dev/null
end_of "$agent"
status=$?
agent=""
date +%s > "$dir/end.0"
for p in "${ranks[@]}"; do end_of "$p"; done
over=1
rm -rf "$home"
exit $status
