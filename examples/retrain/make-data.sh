#!/bin/sh
# Makes rows of x,y,label: sh make-data.sh ROWS SEED. The label is on which side of a line the point lies; one in twenty is
# wrong. The same seed makes the same rows with any awk.
set -eu
awk -v rows="$1" -v seed="$2" '
function next_one() { seed = (seed * 16807) % 2147483647; return seed / 2147483647 }
BEGIN {
	for (i = 0; i < 10; i++) next_one()
	for (i = 0; i < rows; i++) {
		x = 2 * next_one() - 1; y = 2 * next_one() - 1
		label = x + 2 * y > 0.2
		if (next_one() < 0.05) label = !label
		printf "%.6f,%.6f,%d\n", x, y, label
	}
}'
