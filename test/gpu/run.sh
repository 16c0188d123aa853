#!/usr/bin/env bash
# run.sh SCRIMP OUT jobs|faults|peaks [FAULT ...]: what scrimp says of a real NVIDIA GPU beside what is true.
#   jobs    a job with and one without the GPU, two that want it at once, a program killed with -9, a spot interruption
#   faults  programs with one planted fault each: the first cause and its saving, by telemetry and by a trace, beside
#           what the fix saves (about a minute each)
#   peaks   the peak of memory and the pace of small GPTs beside scrimp estimate
# Everything goes to the folder OUT, the summary to stdout. Without a GPU it tries the scripts on processors, with a
# stand-in for nvidia-smi (STAND_IN=1). Needs python3 with PyTorch.
set -uo pipefail
scrimp=$(realpath "$1") out=$(mkdir -p "$2" && realpath "$2") what=$3
shift 3
here=$(dirname "$(realpath "$0")") python=${PYTHON:-python3} seconds=${SECONDS_EACH:-45}
root=$(mktemp -d)
export HOME=$root XDG_DATA_HOME=$root/data PYTHONUNBUFFERED=1
smi=
trap '[ -z "$smi" ] || kill "$smi"; "$scrimp" server stop --now >/dev/null 2>&1; rm -rf "$root"' EXIT
if [ -n "${STAND_IN:-}" ]; then
	mkdir -p "$root/bin"
	cat >"$root/bin/nvidia-smi" <<'S'
#!/bin/sh
case $1 in
*timestamp*) echo "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
	while :; do echo "$(date '+%Y/%m/%d %H:%M:%S.000'), 40 %, 900 MiB, 81559 MiB"; sleep 1; done ;;
*index*) echo "0, NVIDIA H100 80GB HBM3, 580.0, 40, 900, 81559, 300.0, 700.0, 40" ;;
*uuid*) echo "GPU-0, 4" ;;
*memory.total*) echo "NVIDIA H100 80GB HBM3, 81559, 580.0" ;;
*name*) echo "NVIDIA H100 80GB HBM3, 580.0" ;;
esac
S
	chmod +x "$root/bin/nvidia-smi"
	export PATH=$root/bin:$PATH
fi
IFS=, read -r name driver < <(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)
kind=$(echo "$name" | grep -oE 'H200|H100|A100|L40S|L4|A10G|V100|T4' | head -n 1)
case $kind in H200) chip=H200-SXM-141GB ;; H100) chip=H100-SXM-80GB ;; *) chip=$kind ;; esac
echo "# $name, driver$driver, $(nproc) cores, PyTorch $("$python" -c 'import torch; print(torch.__version__)'), $(date +%F)"
cd "$root" || exit 1

# market SPANS: one reserved machine with the GPU, spot with the GPU by SPANS, and one without a GPU.
market() {
	cat >market.yaml <<M
name: gpu
currency: USD
speed: 1
offers:
  - {zone: a, region: a, machine: own, cpus: 16, memory: 64GiB, capacity: reserved, accelerator: $kind, accelerators: 1,
     reserved: {count: 1, from: 0h, until: 24h}, price: 2.00}
  - {zone: b, region: a, machine: spot, cpus: 16, memory: 64GiB, capacity: spot, accelerator: $kind, accelerators: 1,
     price: 1.00, notice: 10s, billing: {minimum: 1s}, available: $1}
  - {zone: c, region: a, machine: plain, cpus: 4, memory: 8GiB, capacity: on-demand, price: 0.10, billing: {minimum: 1s}}
M
}

# job NAME CAPACITY ACCELERATOR COMMAND writes NAME.yaml. ACCELERATOR may be "".
job() {
	printf 'name: %s\ncommand: |\n  %s\nprogress: {pattern: "step=(?P<step>\\\\d+)"}\nresources: {capacity: [%s]%s}\n' "$1" "$4" \
		"$2" "${3:+, accelerator: $3}" >"$1.yaml"
}

# held prints the memory in use on the GPU, in MiB.
held() { nvidia-smi --query-gpu=uuid,memory.used --format=csv,noheader,nounits | cut -d, -f2; }

case $what in
jobs)
	cp "$here/faults.py" .
	market '[{from: 0m, to: 150s, notice: 10s}, {from: 160s, to: 24h}]'
	see="$python -c \"import os, torch; print('visible', os.environ.get('CUDA_VISIBLE_DEVICES'), torch.cuda.device_count())\""
	job with reserved any:1 "$see; $python faults.py healthy $seconds"
	job without on-demand "" "$see"
	job killed reserved any:1 "$python faults.py healthy 600 & sleep 15; kill -9 \$!; exit 3"
	job spot spot any:1 "exec $python faults.py healthy $((3 * seconds))"
	printf 'checkpoint: {dir: ckpt}\nsignal: TERM\ngrace: 9s\n' >>spot.yaml
	before=$(held)
	"$scrimp" run -y --detach --market market.yaml with.yaml
	"$scrimp" run -y --detach spot.yaml
	"$scrimp" offers --json >"$out/offers.json" 2>&1
	"$scrimp" run -y without.yaml 2>&1 | tee "$out/without.txt" | grep -E 'visible|Error'
	"$scrimp" run -y --detach killed.yaml
	sleep 5
	"$scrimp" status killed 2>&1 | tee "$out/waits.txt" | grep -i 'wait'
	"$scrimp" logs -f with 2>&1 | tee "$out/with.txt" | grep -E 'visible|rate'
	"$scrimp" top with --once >"$out/top.txt" 2>&1
	"$scrimp" logs -f killed >"$out/killed.txt" 2>&1
	"$scrimp" logs -f spot 2>&1 | tee "$out/spot.txt" | grep -E 'saved|resumed|rate'
	for j in with killed spot without; do
		echo "## receipt of $j"
		"$scrimp" receipt "$j" 2>&1 | tee "$out/receipt-$j.txt"
	done
	"$scrimp" machines 2>&1 | tee "$out/machines.txt"
	echo "held before $before MiB, after $(held) MiB"
	;;
faults)
	market '[{from: 0m, to: 24h}]'
	cp "$here/faults.py" .
	[ $# -gt 0 ] || set -- healthy loading small-batch fp32 kernels item save set-up copies
	nvidia-smi --query-gpu=timestamp,utilization.gpu,memory.used,memory.total --format=csv -l 1 >"$out/smi.csv" &
	smi=$!
	first=market.yaml
	for fault in "$@"; do
		job "$fault" reserved any:1 "exec $python faults.py $fault $seconds"
		from=$(date '+%Y/%m/%d %H:%M:%S')
		"$scrimp" run -y ${first:+--market $first} "$fault.yaml" >"$out/$fault.log" 2>&1
		"$scrimp" logs "$fault" >>"$out/$fault.log" 2>&1
		first=
		{ head -n 1 "$out/smi.csv"; awk -v f="$from" '$0 >= f && /^2/' "$out/smi.csv"; } >"$out/$fault.smi.csv"
		"$python" faults.py "$fault" 600 trace.json >/dev/null 2>>"$out/errors.txt" && gzip -f trace.json &&
			cp trace.json.gz "$out/$fault.trace.json.gz"
		[ "$fault" = set-up ] || "$python" faults.py "$fault" 15 fixed >"$out/$fault.fixed.log" 2>>"$out/errors.txt"
		rm -f state.pt
		"$scrimp" diagnose "$fault" --json >"$out/$fault.json" 2>&1
		"$scrimp" diagnose "$fault" --json --profile "$out/$fault.trace.json.gz" --profile "$out/$fault.smi.csv" \
			>"$out/$fault.both.json" 2>&1
		"$scrimp" receipt "$fault" --json >"$out/$fault.receipt.json" 2>&1
		find "$XDG_DATA_HOME" -path "*$fault*" -name '*.series' -exec cp {} "$out/$fault.series" \; 2>/dev/null
	done
	"$python" "$here/table.py" "$out" "$@"
	;;
peaks)
	rm -f "$out/peaks.tsv"
	for c in "plain bf16 none 12 768 50257 16 1024" "plain fp32 none 12 768 50257 16 1024" \
		"plain bf16 full 12 768 50257 16 1024" "gated bf16 none 16 1024 32000 8 2048" \
		"gated fp32 none 16 1024 32000 4 2048" "gated bf16 full 16 1024 32000 16 2048"; do
		[ -z "${STAND_IN:-}" ] || c="${c% * * * * *} 1 64 256 1 32"
		read -r shape precision keep layers width words batch length <<<"$c"
		ff=$((4 * width)) gated=0
		[ "$shape" = plain ] || { gated=1 ff=$(((8 * width / 3 + 63) / 64 * 64)); }
		measured=$("$python" "$here/../../internal/estimate/testdata/peaks.py" $c 20)
		estimated=$("$scrimp" estimate --json --gpu "$chip" --precision "$precision" --checkpointing "$keep" \
			--micro "$batch" --seq "$length" --tokens 1B --model \
			"transformer layers=$layers dim=$width heads=$((width / 64)) kv=$((width / 64)) ff=$ff vocab=$words gated=$gated tied=1")
		printf '%s\t%s\t%s\n' "$c" "$measured" "$(tr -d '\n' <<<"$estimated")" | tee -a "$out/peaks.tsv" >/dev/null
	done
	"$python" "$here/table.py" "$out" peaks
	;;
esac
