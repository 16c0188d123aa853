#!/bin/sh
# Says how many points of a file a model puts on the right side, as JSON: sh evaluate.sh MODEL FILE.
set -eu
read -r a b c <"$1"
awk -F, -v a="$a" -v b="$b" -v c="$c" '
(a * $1 + b * $2 + c > 0) == $3 { right++ }
END { printf "{\"accuracy\": %.4f, \"rows\": %d}\n", right / NR, NR }' "$2"
