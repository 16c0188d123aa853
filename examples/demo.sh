#!/bin/sh
# The main job of scrimp, on real input: train a small language model on a
# market that interrupts its machine every few seconds, and end on time, within
# the budget, with the weights of a run that nobody interrupted.
#
# Usage: examples/demo.sh SCRIMP CHARGPT FOLDER   (make demo calls it)
set -eu
scrimp=$(readlink -f "$1") trainer=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$3"
cd "$3"
GOROOT=$(go env GOROOT)
export GOROOT
data=$PWD/data

run=
over() {
	trap - INT TERM EXIT
	if [ -n "$run" ]; then # nobody detaches here: all that the demo rented ends with it
		kill -9 "$run" 2>/dev/null || true
		printf '\nInterrupted: the demo ends its server and its machines, and the job with them. Nothing goes on.\n' >&2
	fi
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
}
trap 'over; exit 130' INT TERM
trap over EXIT

# A data folder of its own, new each time; a demo that was cut off is tidied up first.
[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
rm -rf data work reference outputs receipt.json receipt.html
mkdir -p work reference
cp "$here/chargpt/job.yaml" work/
cp "$trainer" work/chargpt

echo "Measuring this machine: how many steps are 40 s of training?"
STEPS=$("$trainer" --calibrate 40s)
export STEPS
echo "$STEPS steps."
echo

echo "1. A spot market on a simulated clock, 120 × real time. It interrupts machines, some after a"
echo "   notice of 4 s in real time, some without notice:"
"$scrimp" --data "$data" run work/job.yaml -y --market "$here/chargpt/market.yaml" --env STEPS="$STEPS" --env GOROOT="$GOROOT" &
run=$!
status=0
wait "$run" || status=$?
run=
[ "$status" = 0 ] || exit "$status"
"$scrimp" --data "$data" receipt chargpt --json --html receipt.html >receipt.json
if grep -q '"restored":null' receipt.json; then
	echo "AN INTERRUPTION WAS FOLLOWED BY A START FROM NOTHING: no checkpoint was restored." >&2
	exit 1
fi
"$scrimp" --data "$data" get chargpt -o outputs >/dev/null
"$scrimp" --data "$data" ledger verify
over
echo

echo "2. The same trainer, run without interruption, for comparison:"
"$trainer" --steps "$STEPS" --checkpoint reference/checkpoints --out reference/weights.bin --log-every 1000
echo
if cmp outputs/out/weights.bin reference/weights.bin; then
	echo "The final weights are the same, byte for byte: $(wc -c <reference/weights.bin) bytes."
else
	echo "THE WEIGHTS DIFFER: work was lost or done twice." >&2
	exit 1
fi
echo "Receipt: $PWD/receipt.json and $PWD/receipt.html"
