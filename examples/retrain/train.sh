#!/bin/sh
# Fits a line that divides the points, by gradient descent: sh train.sh FILE --epochs N --rate R. The model goes to stdout,
# the progress to stderr.
set -eu
file=$1 epochs=20 rate=0.1
shift
while [ $# -gt 0 ]; do
	case $1 in
	--epochs) epochs=$2 ;;
	--rate) rate=$2 ;;
	*) echo "train.sh: $1 is no flag" >&2; exit 2 ;;
	esac
	shift 2
done
awk -F, -v epochs="$epochs" -v rate="$rate" '
{ x[NR] = $1; y[NR] = $2; label[NR] = $3 }
END {
	for (e = 1; e <= epochs; e++) {
		loss = 0
		for (i = 1; i <= NR; i++) {
			p = 1 / (1 + exp(-(a * x[i] + b * y[i] + c)))
			d = label[i] - p
			a += rate * d * x[i]; b += rate * d * y[i]; c += rate * d
			loss += d * d
		}
		printf "epoch %d/%d loss %.4f\n", e, epochs, loss / NR >"/dev/stderr"
	}
	printf "%.6f %.6f %.6f\n", a, b, c
}' "$file"
