#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inside with_slurm.sh: a run interrupted in five ways ends with the bits of one that nobody disturbed.
#   resume_test.sh TESSERA SOURCE_DIR
set -euo pipefail
source=$2 steps=800
. "$source/tests/cli/job.sh" "$1"
PATH=$(dirname "$tessera"):$PATH
fail() { printf 'resume_test: %s\n' "$*" >&2; tail -n 20 ./*.out ./*.log >&2; exit 1; }
cd "$work"
text_job 2 4 <<J
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 2
[lr_scheduler]
total_steps = $steps
[checkpoint]
enable = true
interval = 25
keep_latest_k = 2
async_mode = "async"
[debug]
deterministic = true
J
flags=("$work/job.toml" --training.steps $steps)

now() { local n; n=$(made run); echo "${n:-0}"; }
reach() { # STEPS: waits until the run has made them
  for _ in {1..3000}; do [ "$(now)" -lt "$1" ] || return 0; sleep 0.1; done
  fail "step $1 was not reached, only $(now)"
}
in_the_middle() { [ "$(now)" -lt $steps ] || fail "$1: the run was over before it was interrupted"; }
state() { scontrol show job "$1" | sed -n 's/.*JobState=\([A-Z_]*\).*/\1/p' | head -n 1; }
wait_for_state() { # JOB STATE
  for _ in {1..3000}; do [ "$(state "$1")" != "$2" ] || return 0; sleep 0.1; done
  fail "job $1 is $(state "$1"), not $2"
}
"$tessera" launch -n 4 -- train "${flags[@]}" --job.dump_folder whole >whole.log 2>&1 || fail "the undisturbed run"

"$tessera" launch -n 4 -- train "${flags[@]}" --job.dump_folder run >term.log 2>&1 & launcher=$!
reach 20; kill -TERM $launcher; code=0; wait $launcher || code=$?
[ $code = 75 ] || fail "TERM: $code, not 75"
in_the_middle TERM

code=0; TESSERA_JOB_END=$(($(date +%s) + 4)) "$tessera" launch -n 4 -- train "${flags[@]}" --job.dump_folder run >wall.log 2>&1 || code=$?
[ $code = 75 ] || fail "the end of the allocation: $code, not 75"
grep -q 'stopped before the allocation ends' wall.log || fail "nothing is said of the allocation's end"
in_the_middle "the end of the allocation"

submit() { sbatch --parsable --requeue -n 4 "$source/jobs/train.sbatch" "${flags[@]}" --job.dump_folder run; }
before=$(now) job=$(submit)
reach $((before + 20))
pkill -KILL -n -f "tessera train $work/job.toml .*--job.dump_folder run" || fail "no rank to kill"
wait_for_state "$job" FAILED
in_the_middle "kill -9"

before=$(now) job=$(TESSERA_REQUEUE=1 submit)
reach $((before + 20))
scancel --signal=USR1 "$job"
for _ in {1..600}; do ! grep -q 'stopped by a signal' "tessera-$job.out" || break; sleep 0.1; done
in_the_middle USR1
before=$(now); reach $((before + 20))
scontrol requeue "$job"
in_the_middle "scontrol requeue"
wait_for_state "$job" COMPLETED
[ "$(scontrol show job "$job" | sed -n 's/.* Restarts=\([0-9]*\).*/\1/p')" = 2 ] || fail "$(scontrol show job "$job")"

[ "$(weights run $steps)" = "$(weights whole $steps)" ] || fail "the weights differ"
[ "$(steps run)" = "$(seq -s ' ' $steps) " ] || fail "metrics.jsonl has not every step once"
echo "five interruptions, the same bits"
