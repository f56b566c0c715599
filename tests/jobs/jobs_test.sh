#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inside with_slurm.sh: the same small job by mpirun, by srun, by train.sbatch and as an array gives the same losses.
#   jobs_test.sh TESSERA SOURCE_DIR
set -euo pipefail
tessera=$1 source=$2
PATH=$(dirname "$tessera"):$PATH
export OMP_NUM_THREADS=1
fail() { printf 'jobs_test: %s\n' "$*" >&2; exit 1; }
cd "$SLURM_TEST_DIR"
mkdir work; cd work
"$source/tests/jobs/tiny_assets.sh" "$tessera" assets

losses() { # FOLDER: step and loss of each step
  [ -s "$1/metrics.jsonl" ] || fail "$1 has no metrics.jsonl: $(cat ./*.out 2>/dev/null | tail -n 20)"
  sed -n 's/.*"step": *\([0-9]*\).*"loss": *\([-+.e0-9]*\).*/\1 \2/p' "$1/metrics.jsonl"
}
same() { # FOLDER STEPS: the losses of its STEPS steps are those of mpirun's first steps, to 1e-6
  paste <(losses mpirun | head -n "$2") <(losses "$1") | awk -v steps="$2" '
    { relative = ($4 - $2) / $2; if (NF != 4 || $1 != $3 || relative > 1e-6 || relative < -1e-6) bad = 1 }
    END { exit bad || NR != steps }' || fail "the losses of $1 differ from mpirun's: $(losses "$1" | xargs), not $(losses mpirun | xargs)"
}
ended() { # JOB: waits until the job has left the queue
  local job=$1 left
  until left=$(squeue -h -j "$job") && [ -z "$left" ]; do sleep 0.2; done
}
state() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -n 1; }

"$source/tests/mpirun.sh" 120 8 "$tessera" train "$source/tests/jobs/tiny.toml" --job.dump_folder mpirun >mpirun.out 2>&1 ||
  { tail -n 20 mpirun.out >&2; fail "mpirun"; }
[ "$(losses mpirun | wc -l)" = 4 ] || fail "mpirun gave $(losses mpirun | wc -l) losses, not 4"

srun -n 8 --mpi=pmix tessera train "$source/tests/jobs/tiny.toml" --job.dump_folder srun >srun.out 2>&1 ||
  { tail -n 20 srun.out >&2; fail "srun"; }
same srun 4

job=$(sbatch --parsable -n 8 "$source/jobs/train.sbatch" "$source/tests/jobs/tiny.toml" --job.dump_folder sbatch)
ended "$job"
[ "$(state "$job")" = COMPLETED ] || fail "train.sbatch is $(state "$job"): $(tail -n 20 "tessera-$job.out")"
same sbatch 4

printf '# two runs\n\n--job.description "first of two" --training.steps 3 --lr_scheduler.total_steps 4\n--optimizer.lr 0\n' >sweep.list
job=$(sbatch --parsable -n 8 --array=1-3 "$source/jobs/array.sbatch" sweep.list "$source/tests/jobs/tiny.toml" \
  --training.steps=4 --optimizer.lr 8e-4) # the list has other steps for run 1, another learning rate for run 2
ended "$job"
same outputs/sweep/1 3
[ "$(losses outputs/sweep/2 | wc -l)" = 4 ] || fail "run 2 of the array has $(losses outputs/sweep/2 | wc -l) steps"
grep -q "has no line for task 3" "tessera-array-${job}_3.out" || fail "run 3 of a list of two: $(cat "tessera-array-${job}_3.out")"

echo "--job.description 'not closed" >open.list
job=$(sbatch --parsable -n 8 --array=1 "$source/jobs/array.sbatch" open.list "$source/tests/jobs/tiny.toml")
ended "$job"
grep -q "cannot read the flags in 'open.list' for task 1" "tessera-array-${job}_1.out" || fail "an open quote: $(cat "tessera-array-${job}_1.out")"
echo "mpirun, srun, train.sbatch and array.sbatch agree"
