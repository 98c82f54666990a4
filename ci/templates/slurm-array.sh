#!/usr/bin/env bash
# Compiles and runs the matrix in shards, a task of the array each. Adjust the #SBATCH lines, then
#
#   array=$(sbatch --parsable ci/templates/slurm-array.sh)
#   sbatch --dependency=afterany:"$array" ci/templates/slurm-gate.sh
#
# With results of an earlier run in $DURATIONS the shards take about equally long.
#SBATCH --job-name=tile-harness
#SBATCH --array=1-8
#SBATCH --cpus-per-task=8
#SBATCH --gres=gpu:1
#SBATCH --time=01:00:00
#SBATCH --output=tile-harness-%A-%a.log
set -euo pipefail

matrix=${MATRIX:-matrix.toml}
first=${SLURM_ARRAY_TASK_MIN:-1}
shard=$((SLURM_ARRAY_TASK_ID - first + 1))/$SLURM_ARRAY_TASK_COUNT
out=all/shard-$SLURM_ARRAY_TASK_ID

status=0
"${PYTHON:-python3}" -m harness --plain run "$matrix" --shard "$shard" --out "$out" \
    ${DURATIONS:+--durations "$DURATIONS"} --jobs "${SLURM_CPUS_PER_TASK:-2}" --timed || status=$?
# 1 tells of findings; whether they matter is for the gate to say.
if [ "$status" -gt 1 ]; then exit "$status"; fi
