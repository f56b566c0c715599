#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Checkpoints written while training goes on: the same bits as without, and after a kill -9 at any point of a save.
#   async_save_test.sh TESSERA FAULT_SHIM RANK:CALL...
# For each RANK:CALL that rank ends with SIGKILL right after its CALL-th file call below the checkpoint folder.
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
shim=$(realpath "$2"); shift 2
job 2 4 <<J
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 2
[checkpoint]
enable = true
interval = 2
keep_latest_k = 2
async_mode = "async"
[debug]
deterministic = true
check_collectives = true
J
# What is in a run's checkpoint folder.
left() { find "$work/$1/checkpoint" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' '; }

check "a run that blocks ends with 0" "$(run blocking --checkpoint.async_mode disabled)" 0
reference=$(weights blocking)
check "one that saves in the background does" "$(run async)" 0
check "and has the same bits" "$(weights async)" "$reference"
check "the last two checkpoints are there" "$(left async)" "LATEST step-00000006 step-00000008 "
check "and whole" "$("$tessera" ckpt verify --deep "$work/async" >/dev/null 2>&1; echo $?)" 0
check "the index is there in the end" "$(find "$work/async/checkpoint/step-00000008" -name index.h5 | wc -l)" 1
check "it says what training lost" "$(grep -c 'training waited' "$work/async.log")" 4

for point in "$@"; do
  rank=${point%:*} call=${point#*:} name=killed-$rank-$call
  code=$(LD_PRELOAD=$shim TESSERA_FAULT="ranks=$rank nth=$call kind=stop folder=$work/$name/checkpoint" run "$name")
  check "rank $rank is killed at its call $call" "$code" 137
  check "and what is listed is whole" "$([ -e "$work/$name/checkpoint/LATEST" ] || exit 0; "$tessera" ckpt verify --deep "$work/$name" 2>&1 | grep -c damaged)" \
    "$([ -e "$work/$name/checkpoint/LATEST" ] && echo 0)"
  check "the same command goes on" "$(run "$name")" 0
  check "with the same bits" "$(weights "$name")" "$reference"
  check "with every step once in metrics.jsonl" "$(steps "$name")" "1 2 3 4 5 6 7 8 "
  check "and nothing left" "$(left "$name")" "LATEST step-00000006 step-00000008 "
done

# TERM to the launcher while a save may be under way: the last one is durable before the end.
run_until_term signalled --training.steps 20 --checkpoint.interval 1
check "after a signal the code is 75" $? 75
last=$(steps signalled); last=${last% }; last=${last##* }
check "and the checkpoint of the last step is there" "$("$tessera" ckpt verify --deep "$work/signalled/checkpoint/$(printf 'step-%08d' "$last")" >/dev/null 2>&1; echo $?)" 0

# A disk that fails under the second save in the background (a save of rank 1 is some 45 calls): one error, exit code 5, the older checkpoint stays.
code=$(LD_PRELOAD=$shim TESSERA_FAULT="ranks=1 nth=60 error=28 folder=$work/full/checkpoint" run full)
check "a full disk under rank 1 ends the run with 5" "$code" 5
check "said once" "$(grep -c 'rank 1: cannot .*No space left on device' "$work/full.log")" 1
check "the older checkpoint is whole" "$("$tessera" ckpt verify --deep "$work/full" >/dev/null 2>&1; echo $?)" 0
check "and the run goes on from it" "$(run full)$(weights full)" "0$reference"

finish
