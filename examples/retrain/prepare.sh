#!/bin/sh
# Divides the rows: sh prepare.sh FILE N. Every N-th row goes to data/test.csv, the others to data/train.csv.
set -eu
mkdir -p data
awk -v n="$2" 'NR % n == 0' "$1" >data/test.csv
awk -v n="$2" 'NR % n != 0' "$1" >data/train.csv
wc -l data/train.csv data/test.csv
