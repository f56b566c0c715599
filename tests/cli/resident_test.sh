#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs whose ranks take over 1 GB: the resident size that a rehearsal predicts is within 15 % of that of the largest rank.
#   resident_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
text_job 14 8 <<J
J
# size KEY VALUE: of the model
size() { sed -i "s/\"$1\": [0-9]*/\"$1\": $2/" "$work/config.json"; }
# compare NAME [FLAG...]: two steps on two ranks, and their rehearsal
compare() {
  local name=$1 flags=("${@:2}" --training.steps 2) trained rehearsed error
  timeout 900 "$tessera" launch -n 2 -- train "$work/job.toml" --job.dump_folder "$work/$name" "${flags[@]}" >"$work/$name.log" 2>&1
  trained=$(sed -n 's/.*"memory_bytes": *\([0-9]*\).*/\1/p' "$work/$name/metrics.jsonl" | sort -n | tail -n 1)
  rehearsed=$("$tessera" plan "$work/job.toml" --rehearse --gpus 2 --json "${flags[@]}" | sed -n 's/.*"resident_bytes": *\([0-9]*\).*/\1/p')
  error=$(((1000 * rehearsed - 1000 * trained) / trained))
  echo "$name: rehearsed $rehearsed of $trained bytes, $error per mille"
  check "$name takes over 1 GB" $((trained > 1000000000)) 1
  check "$name is predicted" $((error * error <= 150 * 150)) 1
}
size hidden_size 1024
size intermediate_size 3072
compare weights --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_microbatch_size 2
compare shards --training.local_batch_size 4
size hidden_size 256
size intermediate_size 768
size num_hidden_layers 6
long=(--training.seq_len 1024 --training.global_batch_size 32)
compare activations "${long[@]}" --training.local_batch_size 16
compare pipeline "${long[@]}" --training.local_batch_size 32 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_microbatch_size 8
finish
