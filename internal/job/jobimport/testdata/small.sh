#!/bin/sh
#SBATCH -t 90
#SBATCH --mem=2000
exec ./simulate --steps 100
