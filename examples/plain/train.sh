#!/bin/sh
# A program as it is written without scrimp in mind: it saves to a folder now
# and then, reads its newest save when it starts, and on SIGTERM saves and ends.
# It fits y = a·x by gradient descent, in thousandths, as the shell has no others.
#
#   sh train.sh [STEPS] [SECONDS-A-STEP]
set -eu

steps=${1:-300}
pause=${2:-0.1}
folder=${SCRIMP_CHECKPOINT_DIR:-checkpoints}
mkdir -p "$folder"

step=0
a=0 # thousandths
if [ -f "$folder/state" ]; then
	read -r step a <"$folder/state"
	echo "resumed from step $step"
fi

# save publishes by a rename, so that a kill in between leaves the older state whole.
save() {
	echo "$step $a" >"$folder/state.tmp"
	sync "$folder/state.tmp" 2>/dev/null || sync
	mv "$folder/state.tmp" "$folder/state"
	echo "saved step $step"
}

stop=0
trap 'stop=1' TERM

while [ "$step" -lt "$steps" ]; do
	if [ "$stop" = 1 ]; then
		save
		exit 143
	fi
	step=$((step + 1))
	x=$((step % 7 + 1))
	error=$((a * x - 2718 * x)) # of the prediction for x, where y = 2.718·x
	a=$((a - error * x / 500))
	loss=$((error * error / 1000000))
	echo "step $step/$steps loss $loss"
	if [ $((step % 20)) = 0 ]; then
		save
	fi
	sleep "$pause" || true # the signal also ends the sleep of the group
done
save
mkdir -p out
echo "$step $a" >out/result
echo "done: a is $a thousandths"
