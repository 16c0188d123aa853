#!/bin/sh
# A pipeline that trains a model again only where something has changed, on a simulated market: a first run, a run without a
# change, new data, a model below the gate and one exactly at it. It needs nothing but a shell and awk.
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
# gate VALUE writes the accuracy that a model needs to be deployed.
gate() {
	sed "s/accuracy: .*/accuracy: $1/" work/params.yaml >work/params.new
	mv work/params.new work/params.yaml
}

echo "1. The first run: every stage runs."
sh work/make-data.sh 2000 1 >work/raw.csv
run
expect prepare=done sample=done train=done evaluate=done deploy=done

echo
echo "2. Nothing has changed: no stage runs."
run
expect prepare=reused sample=reused train=reused evaluate=reused deploy=reused

echo
echo "3. A parameter of the training has changed: only what depends on it runs."
sed "s/epochs: .*/epochs: 25/" work/params.yaml >work/params.new
mv work/params.new work/params.yaml
run
expect prepare=reused train=done
"$scrimp" --data "$data" pipeline why retrain train

echo
echo "4. New data, and a model that is below the gate: it is not deployed."
sh work/make-data.sh 500 2 >>work/raw.csv
gate 0.9999
run
expect prepare=done train=done evaluate=done deploy=skipped
"$scrimp" --data "$data" pipeline status retrain

echo
accuracy=$("$scrimp" --data "$data" pipeline status retrain --json |
	sed 's/.*"name":"evaluate".*"metrics":{"accuracy":"\([0-9.]*\)".*/\1/')
echo "5. The gate is exactly the accuracy of the model, $accuracy: it is deployed."
gate "$accuracy"
run
expect prepare=reused train=reused evaluate=reused deploy=done

echo
"$scrimp" --data "$data" pipeline graph retrain
"$scrimp" --data "$data" ledger verify
"$scrimp" --data "$data" get retrain-5.deploy -o "$PWD" >/dev/null
cat live/model.txt
over
