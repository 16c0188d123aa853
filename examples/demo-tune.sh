#!/bin/sh
# A search for hyper-parameters within a budget, on real input: trials of the demo's trainer on a market that interrupts
# its machines. It ends with the best configuration, trained in full, and the receipt of the search.
#
# Usage: examples/demo-tune.sh SCRIMP CHARGPT FOLDER   (make demo-tune calls it)
set -eu
scrimp=$(readlink -f "$1") trainer=$(readlink -f "$2")
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$3"
cd "$3"
GOROOT=$(go env GOROOT)
export GOROOT
data=$PWD/data

over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
}
trap 'over; exit 130' INT TERM
trap over EXIT

[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
rm -rf data work best receipt.json trials.csv
mkdir -p work
cp "$here/chargpt/job.yaml" "$here/chargpt/study.yaml" work/
cp "$trainer" work/chargpt

echo "The plan of the search, before anything is spent:"
"$scrimp" --data "$data" tune plan work/study.yaml --env STEPS=500 --market "$here/chargpt/market.yaml"
echo
"$scrimp" --data "$data" tune work/study.yaml -y --env STEPS=500 --env GOROOT="$GOROOT"
echo
echo "The trials, the best first:"
"$scrimp" --data "$data" tune trials chargpt-study
"$scrimp" --data "$data" tune best chargpt-study
"$scrimp" --data "$data" tune export chargpt-study >trials.csv
"$scrimp" --data "$data" receipt chargpt-study --json >receipt.json
"$scrimp" --data "$data" ledger verify
best=$("$scrimp" --data "$data" tune best chargpt-study --json | sed 's/.*"id":"\([^"]*\)".*/\1/')
"$scrimp" --data "$data" get "$best" -o best >/dev/null
ls -l best/out/weights.bin
over
echo
echo "Trials: $PWD/trials.csv   Receipt: $PWD/receipt.json"
