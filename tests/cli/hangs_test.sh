#!/usr/bin/env bash
# Collective calls that go wrong somewhere in a run: the rank and the call are named, the job ends with 7, no process is left.
#   hangs_test.sh TESSERA FIRST LAST      seeds; each is one run on four ranks
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
first=$2 last=$3
job 4 2 <<J
[comm]
train_timeout_seconds = 20
[debug]
check_collectives = true
J
export TESSERA_STRICT_TIMEOUT_SECONDS=3
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
  begin=$SECONDS
  # shellcheck disable=SC2086
  check "seed $seed, $fault ends with 7" "$(run "seed$seed" $mesh --debug.inject_faults $fault)" 7
  check "within 12 s" $((SECONDS - begin <= 12)) 1
  # Among those that disagree, or the one that is waited for in vain, or the last of a chain of such.
  named="(disagree.* world ranks? ([0-9]+, )*$rank[:,]|in vain for world ranks? ([0-9]+, )*$rank[;,]|, for rank $rank[;:])"
  check "rank $rank and a call are named" "$(grep -cE "^tessera: .*(call|group) [0-9].*" "$work/seed$seed.log" | sed 's/^[1-9].*/some/') $(grep -qE "$named" "$work/seed$seed.log" && echo named)" \
    "some named"
  check "no process is left" "$(pgrep -fc -- "--job.dump_folder $work/")" 0
done
finish
