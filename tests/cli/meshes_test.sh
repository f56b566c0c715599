#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whole jobs from the command line on four ranks whose losses must be those of one rank: context parallelism, experts,
# microbatches that are tuned or change on the way. In float64, so that no router decides otherwise.
#   meshes_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
llama 4 >"$work/llama3.json"
for model in mixtral deepseek_v3 gpt_oss; do
  sed 's/"vocab_size": 48/"vocab_size": 256/' "$here/../golden/families/$model/config.json" >"$work/$model.json"
done
cat >"$work/job.toml" <<J
[training]
dataset = "replay"
dataset_path = "$here/../golden/llama_a/batches.safetensors"
seq_len = 64
local_batch_size = 8
global_batch_size = 8
steps = 4
dtype = "float64"
[lr_scheduler]
warmup_steps = 2
[activation_checkpoint]
mode = "none"
J
# train RANKS FOLDER [FLAG...]: the losses of a job, one a line
train() {
  timeout 200 "$tessera" launch -n "$1" -- train "$work/job.toml" --job.dump_folder "$work/$2" "${@:3}" >"$work/$2.log" 2>&1 ||
    { echo "exit code $?"; tail -n 5 "$work/$2.log"; return; }
  sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$work/$2/metrics.jsonl"
}
# same WHAT MODEL FLAG...: four ranks and one have the same losses, in STEPS steps (4)
same() {
  local begin=$SECONDS
  local what=$1 model=$2 alone; shift 2
  alone=$work/alone.$model.${steps:-4}
  [ -e "$alone" ] || train 1 "one-$model-${steps:-4}" --model.hf_config "$work/$model.json" --training.steps "${steps:-4}" >"$alone"
  train 4 "$what" --model.hf_config "$work/$model.json" --training.steps "${steps:-4}" "$@" >"$work/here"
  if paste "$alone" "$work/here" | awk -v steps="${steps:-4}" '
      { d = ($1 - $2) / $1; if ($1 + 0 <= 0 || $2 + 0 <= 0 || d > 1e-6 || d < -1e-6) wrong = 1 } END { exit wrong || NR != steps }'; then
    echo "ok    $what ($((SECONDS - begin)) s)"
  else
    echo "WRONG $what: losses of one rank and of four:"; paste "$alone" "$work/here"; failures=$((failures + 1))
  fi
}
p() { echo "--parallelism.$1"; }

same ring llama3 $(p context_parallel_degree) 4 $(p context_parallel_rotate_method) ring
same gathered-keys llama3 $(p context_parallel_degree) 2 $(p data_parallel_shard_degree) 2 --training.local_batch_size 4
same experts mixtral $(p expert_parallel_degree) 4 --training.local_batch_size 2
same experts-and-tensors deepseek_v3 $(p expert_parallel_degree) 2 $(p tensor_parallel_degree) 2 --training.local_batch_size 4
same parts-of-experts gpt_oss $(p expert_parallel_degree) 2 $(p tensor_parallel_degree) 2 $(p expert_tensor_parallel_degree) 2 \
  --training.local_batch_size 4
same changing-microbatches llama3 $(p pipeline_parallel_degree) 2 $(p tensor_parallel_degree) 2 \
  $(p pipeline_parallel_microbatch_steps) 2:2,4:4
for from in "2 sequences from step 2" "4 sequences from step 4"; do
  grep -q "microbatches of $from" "$work/changing-microbatches.log" || { echo "WRONG no word of $from"; failures=$((failures + 1)); }
done
steps=14 same tuned-microbatches llama3 $(p pipeline_parallel_degree) 4 $(p pipeline_parallel_schedule) GPipe \
  $(p pipeline_parallel_microbatch_size) auto
grep -q "sequences were fastest" "$work/tuned-microbatches.log" || { echo "WRONG nothing was chosen"; failures=$((failures + 1)); }
finish
