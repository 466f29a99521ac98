#!/bin/bash
# One share of a matrix for each task of a Slurm job array, each on a node with a device.
#
#     sbatch slurm-array.sh
#
# Change what is marked with "change:". docs/how-to/slurm.md explains each part.
#SBATCH --job-name=ep-harness
#SBATCH --array=1-8
# change: what the cluster calls its devices, and how long a share may take.
#SBATCH --gres=npu:1
#SBATCH --time=02:00:00
# After a node failure the task starts again, and goes on where it was.
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=ep-harness-%a.log
set -euo pipefail

# change: a matrix, and a folder that all nodes see.
matrix=${MATRIX:-my.toml}
results=${RESULTS:-results}

share=$results/share-$SLURM_ARRAY_TASK_ID
how=--out
if test -f "$share/run.json"; then how=--resume; fi

code=0
ep-harness run "$matrix" --shard auto "$how" "$share" --no-report || code=$?
case $code in
  # 1: unexpected verdicts, which the report of all shares shows.
  0 | 1) exit 0 ;;
  # A required target could not be used here: the next try begins anew.
  3) mkdir -p "$results-failed" && mv "$share" "$results-failed/share-$SLURM_ARRAY_TASK_ID-$(date +%s)" ;;
esac
exit "$code"
