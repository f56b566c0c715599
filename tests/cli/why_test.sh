#!/usr/bin/env bash
# A rank that stops in a collective call of a run: `tessera why` names it afterwards.
#   why_test.sh TESSERA FIRST LAST      seeds; each is one run on four ranks
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
first=$2 last=$3
job 4 2 <<J
[comm]
init_timeout_seconds = 10
train_timeout_seconds = 10
save_traces_folder = "traces"
J
meshes=("--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2")

check "a run without traces" "$("$tessera" why "$work" 2>&1 | grep -c 'there are no traces')" 1
for ((seed = first; seed <= last; seed++)); do
  RANDOM=$((seed * 7919))
  mesh=${meshes[seed % 5]} rank=$((seed % 4))
  fault=$((1 + RANDOM % 4)):freeze:$rank:$((1 + RANDOM % 12))
  # shellcheck disable=SC2086
  check "seed $seed, $fault ends with 7" "$(run "seed$seed" $mesh --debug.inject_faults $fault)" 7
  "$tessera" why "$work/seed$seed" >"$work/seed$seed.why.log" 2>&1
  check "rank $rank and nobody else is named" "$(sed -n 's/^rank \([0-9]*\) on .* has .* in which .*/\1/p' "$work/seed$seed.why.log")" "$rank"
  check "the job said so at once" "$(grep -cE "rank $rank on .* has .* in which" "$work/seed$seed.log" | sed 's/^[1-9].*/some/')" some
done
finish
