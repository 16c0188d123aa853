#!/bin/sh
# Takes every N-th row: sh sample.sh FILE N.
set -eu
awk -v n="$2" 'NR % n == 1' "$1"
