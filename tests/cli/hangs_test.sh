#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collective calls that go wrong somewhere in a run: the rank and the call are named, the job ends with 7, no process is left.
#   hangs_test.sh TESSERA FAULT_SHIM FIRST LAST      seeds; each is one run on four ranks
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
shim=$(realpath "$2") first=$3 last=$4
job 4 2 <<J
[comm]
train_timeout_seconds = 120
trace_buf_size = 20
save_traces_folder = "traces"
save_traces_file_prefix = "call_of_"
[debug]
check_collectives = true
J

# Before the first step, too: a rank that loads a checkpoint from a disk that does not answer; one that answers late is waited for.
save="--checkpoint.enable true --comm.init_timeout_seconds 12 --debug.check_collectives false"
slow() { LD_PRELOAD=$shim TESSERA_FAULT="ranks=2 nth=1 seconds=$1 folder=$work/load/checkpoint" run load $save --training.steps 3 --comm.save_timeout_seconds "$2"; }
check "a checkpoint to load" "$(run load $save --training.steps 2)" 0
check "a disk that hangs ends the job with 7" "$(slow 300 3)" 7
check "rank 2 is not in a call" "$(grep -c 'rank 2 (before the first step): not in a call' "$work/load.log" | sed 's/^[1-9].*/some/')" some
check "a rank that waits leaves its last calls" "$(grep -l 'last calls, newest last' "$work"/load/traces/call_of_* | wc -l | sed 's/^[1-9].*/some/')" some
check "a slow one is waited for" "$(slow 15 60)" 0

export TESSERA_STRICT_TIMEOUT_SECONDS=6
kinds=(skip shape order freeze)
meshes=("--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2")

for ((seed = first; seed <= last; seed++)); do
  RANDOM=$((seed * 7919))
  kind=${kinds[seed % 4]} mesh=${meshes[seed % 5]} rank=$((RANDOM % 4))
  fault=$((1 + RANDOM % 4)):$kind:$rank:$((1 + RANDOM % 12))
  # shellcheck disable=SC2086
  check "seed $seed, $fault ends with 7" "$(run "seed$seed" $mesh --debug.inject_faults $fault)" 7
  check "within 90 s of the last step" $(($(since_last_step "seed$seed") <= 90)) 1 # 10 s where nobody else computes
  # Among those that disagree, or the one that is waited for in vain, or the last of a chain of such.
  named="(disagree.* world ranks? ([0-9]+, )*$rank[:,]|[0-9] s for world ranks? ([0-9]+, )*$rank[;,]|, for rank $rank[;:])"
  check "rank $rank and a call are named" "$(grep -cE "^tessera: .*(call|group) [0-9].*" "$work/seed$seed.log" | sed 's/^[1-9].*/some/') $(grep -qE "$named" "$work/seed$seed.log" && echo named)" \
    "some named"
  check "no process is left" "$(pgrep -fc -- "--job.dump_folder $work/")" 0
done
finish
