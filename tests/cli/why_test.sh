#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that stops in a collective call of a run on two pretended nodes: the job names it, and `tessera why` does so afterwards.
#   why_test.sh TESSERA FIRST LAST      seeds; each is one run on four ranks
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
first=$2 last=$3
job 4 2 <<J
[comm]
init_timeout_seconds = 10
train_timeout_seconds = 10
save_traces_folder = "traces"
trace_buf_size = 30
J
meshes=("--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"
        "--parallelism.data_parallel_replicate_degree 2 --parallelism.data_parallel_shard_degree 2"
        "--parallelism.context_parallel_degree 2 --parallelism.tensor_parallel_degree 2")
# Ranks 0 and 1 on node1, 2 and 3 on node2: own host names, and TCP between them.
nodes=(--mca plm_rsh_agent "$here/pretended_node.sh" -H node1:2,node2:2
       --mca btl self,vader,tcp --mca btl_tcp_if_include lo --mca oob_tcp_if_include lo)
if ! "$here/pretended_node.sh" node1 true 2>/dev/null; then
  echo "note: this machine cannot pretend to be two nodes (unshare --uts); all ranks are on one"
  nodes=()
fi
# on_nodes FOLDER [FLAG...]: as `run`
on_nodes() {
  timeout -k 10 400 "$tessera" launch -n 4 "${nodes[@]}" -- train "$work/job.toml" --job.dump_folder "$work/$1" "${@:2}" >"$work/$1.log" 2>&1
  echo $?
}

check "a run without traces" "$("$tessera" why "$work" 2>&1 | grep -c 'there are no traces')" 1
for ((seed = first; seed <= last; seed++)); do
  RANDOM=$((seed * 7919))
  mesh=${meshes[seed % 5]} rank=$((seed % 4))
  fault=$((1 + RANDOM % 4)):freeze:$rank:$((1 + RANDOM % 12))
  node=$([ ${#nodes[@]} = 0 ] && hostname || echo "node$((1 + rank / 2))")
  # shellcheck disable=SC2086
  check "seed $seed, $fault ends with 7" "$(on_nodes "seed$seed" $mesh --debug.inject_faults $fault)" 7
  "$tessera" why "$work/seed$seed" >"$work/seed$seed.why.log" 2>&1
  check "rank $rank and nobody else is named" "$(sed -n 's/^rank \([0-9]*\) (node .*) \(has .* in which\|is stopped\).*/\1/p' "$work/seed$seed.why.log")" "$rank"
  check "with its node, and where it was" \
    "$(sed -n 's/^rank [0-9]* (node \(.*\)) has not entered [a-z_]* [0-9]* of [^;]*; last seen \(at step [0-9]*, [^;]\|before\).*/\1/p' "$work/seed$seed.why.log")" "$node"
  check "all ranks of all nodes left their last calls" "$(ls "$work/seed$seed/traces/" | grep -c '^rank_[0-3].json$')" 4
  check "30 of each at most" "$(grep -o '"number"' "$work/seed$seed/traces/rank_$rank.json" | wc -l | awk '{print ($1 > 0 && $1 <= 30) ? "yes" : $1}')" yes
  check "the job said so at once" "$(grep -cE "rank $rank \(node $node\) has .* in which" "$work/seed$seed.log" | sed 's/^[1-9].*/some/')" some
done
finish
