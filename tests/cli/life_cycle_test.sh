#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Life of a run on 4 ranks: bitwise repeatable, killed and resumed, stopped by a signal, wrong configuration and data.
#   life_cycle_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
job 4 4 <<J
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 2
[lr_scheduler]
warmup_steps = 2
[checkpoint]
enable = true
interval = 2
[debug]
deterministic = true
J

check "an uninterrupted run ends with 0" "$(run whole)" 0
reference=$(weights whole)
check "the same run again has nothing left to do" "$(run whole)" 0
check "and its weights stay" "$(weights whole)" "$reference"
kept() { find "$work/$1/checkpoint" -maxdepth 1 -name 'step-????????' -printf '%f\n' | sort | tr '\n' ' '; }
check "a second run has the same bits" "$(run again --checkpoint.keep_latest_k 2 --checkpoint.keep_every 4)$(weights again)" "0$reference"
check "and keeps the newest two and each fourth step" "$(kept again)" "step-00000004 step-00000006 step-00000008 "

# A file of the latest checkpoint lacks its last byte: the run goes on from the one before and says so.
truncate -s -1 "$(find "$work/again/checkpoint/step-00000008" -name 'shard-*.h5' | sort | head -n 1)"
check "a run whose latest checkpoint is damaged goes on" "$(run again --checkpoint.keep_latest_k 2 --checkpoint.keep_every 4)" 0
check "says which one it passed over" "$(grep -c 'skipping checkpoint step-00000008: .*is damaged' "$work/again.log")" 1
check "ends with the same bits" "$(weights again)" "$reference"
check "and sets the damaged one aside" "$(find "$work/again/checkpoint" -maxdepth 1 -name 'step-00000008.damaged-*' | wc -l)" 1

# kill -9 of one rank at a random time, then the same command line again.
"$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/killed" >"$work/killed.log" 2>&1 &
job=$!
until [ -e "$work/killed/checkpoint/step-00000002" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
pkill -KILL -f -n -- "tessera train $work/job.toml --job.dump_folder $work/killed" || echo "note: the run ended before it could be killed"
wait $job
check "a killed run goes on" "$(run killed)" 0
check "and ends with the same bits" "$(weights killed)" "$reference"
check "with every step once in metrics.jsonl" "$(steps killed)" "1 2 3 4 5 6 7 8 "

# TERM to the launcher: a checkpoint at the next step boundary, exit code 75.
run_until_term signalled --training.steps 20 --checkpoint.interval 1000
check "after a signal the code is 75" $? 75
check "and a checkpoint is there" "$(find "$work/signalled/checkpoint" -maxdepth 1 -name 'step-????????' | wc -l)" 1

check "an unknown key ends all ranks with 2" "$(run wrong --training.stepz 3)" 2
check "with a suggestion" "$(grep -c 'training.steps' "$work/wrong.log")" 1
check "a mesh that does not fit" "$(run wrong2 --parallelism.tensor_parallel_degree 3)" 2
sed 's/"num_attention_heads": 4/"num_attention_heads": 6/' "$work/config.json" >"$work/six_heads.json"
check "heads that tp does not divide" "$(run wrong3 --model.hf_config "$work/six_heads.json" --parallelism.tensor_parallel_degree 4 --parallelism.pipeline_parallel_degree 1 --parallelism.data_parallel_shard_degree 1)" 2
check "missing data is 4" "$(run wrong4 --training.dataset_path "$work/nowhere.safetensors")" 4
check "too few steps of data is 4" "$(run wrong5 --training.steps 30 --checkpoint.interval 100)" 4
check "said once" "$(grep -c 'set training.steps to at most 20' "$work/wrong5.log")" 1
check "a checkpoint that is not there is 5" "$(run wrong6 --checkpoint.load_step 77)" 5
touch "$work/file"
timeout 200 "$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/file/sub" >"$work/unwritable.log" 2>&1
check "a folder that cannot be made is 3" $? 3

finish
