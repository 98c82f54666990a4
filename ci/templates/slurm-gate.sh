#!/usr/bin/env bash
# Joins what slurm-array.sh left in all/ and decides; the exit code is the job's.
#SBATCH --job-name=tile-harness-gate
#SBATCH --cpus-per-task=2
#SBATCH --time=00:30:00
#SBATCH --output=tile-harness-gate-%j.log
set -euo pipefail

"${PYTHON:-python3}" -m harness --plain merge all/* --out merged --quiet || [ $? -eq 1 ]
ci/gate.sh "${BASELINE:-13.3.1}" "${CANDIDATE:-13.4.3}" "${MATRIX:-matrix.toml}" gate-results \
    --results-baseline merged --results-candidate merged
