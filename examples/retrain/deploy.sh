#!/bin/sh
# Puts a model where it is served from: sh deploy.sh MODEL FOLDER.
set -eu
mkdir -p "$2"
cp "$1" "$2/model.txt"
