#!/bin/sh
# A pipeline that trains a model again only where something has changed, on a simulated market: a first run, a run without a
# change, a gain below the gate, one exactly at it, and new data. It needs nothing but a shell and awk.
#
# Usage: examples/demo-pipeline.sh SCRIMP FOLDER   (make demo-pipeline calls it)
set -eu
scrimp=$(readlink -f "$1")
here=$(dirname "$(readlink -f "$0")")
mkdir -p "$2"
cd "$2"
data=$PWD/data

over() {
	trap - INT TERM EXIT
	[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
}
trap 'over; exit 130' INT TERM
trap over EXIT

[ -d "$data" ] && "$scrimp" --data "$data" server stop --now || true
rm -rf data work live
cp -r "$here/retrain" work

run() {
	"$scrimp" --data "$data" pipeline run -y work/pipeline.yaml --market calm
}
# state STAGE prints how the stage of the newest run stands.
state() {
	"$scrimp" --data "$data" pipeline graph retrain --json | sed -n "s/.*\"name\":\"$1\".*\"state\":\"\([a-z]*\)\".*/\1/p"
}
# expect STAGE=STATE ... ends the demo where a stage stands otherwise.
expect() {
	for pair in "$@"; do
		is=$(state "${pair%%=*}")
		if [ "$is" != "${pair#*=}" ]; then
			echo "the stage ${pair%%=*} is $is, and should be ${pair#*=}" >&2
			exit 1
		fi
	done
}
# param NAME VALUE writes a parameter.
param() {
	sed "s/^  $1: .*/  $1: $2/" work/params.yaml >work/params.new
	mv work/params.new work/params.yaml
}

echo "1. The first run, with a training that is much too short: nothing is deployed yet, so every stage runs."
sh work/make-data.sh 2000 1 >work/raw.csv
param epochs 1
param rate 0.001
run
expect sample.evaluate=done prepare=done train=done evaluate=done deploy=done

echo
echo "2. Nothing has changed: no stage runs, and a model that is no better than the deployed one is not deployed."
run
expect sample.evaluate=reused prepare=reused train=reused evaluate=reused deploy=skipped

echo
echo "3. The training is longer: only what depends on it runs. The gate asks for a gain of 10 points, and that is too much."
param epochs 25
param rate 0.1
param gain 10%
run
expect prepare=reused train=done evaluate=done deploy=skipped
"$scrimp" --data "$data" pipeline why retrain train
"$scrimp" --data "$data" pipeline status retrain

echo
gain=$("$scrimp" --data "$data" models show retrain@3 --json | sed 's/.*"gain":"\([0-9.]*\)".*/\1/')
echo "4. The gate asks for exactly the gain of the model, $gain: it is deployed."
param gain "$gain"
run
expect prepare=reused train=reused evaluate=reused deploy=done

echo
echo "5. New data, and a model that is worse on it than the deployed one was: it is not deployed."
sh work/make-data.sh 500 2 >>work/raw.csv
param gain 0.1%
run
expect prepare=done train=done evaluate=done deploy=skipped

echo
"$scrimp" --data "$data" pipeline graph retrain
echo
"$scrimp" --data "$data" pipeline cost retrain
echo
"$scrimp" --data "$data" models retrain
"$scrimp" --data "$data" ledger verify
"$scrimp" --data "$data" get retrain-4.deploy -o "$PWD" >/dev/null
cat live/model.txt
over
