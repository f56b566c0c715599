#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs whose mesh, schedule or model do not fit each other: `config check` finds each, and a start on eight ranks every EVERYth
# of them, before anything is allocated and once for all ranks, with what would be allowed, exit code 2.
#   mismatch_test.sh TESSERA EVERY
set -uo pipefail
tessera=$(realpath "$1") every=$2 here=$(dirname "$(realpath "$0")")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
failures=0 count=0
export OMP_NUM_THREADS=1

# llama N: a config.json with N heads, 6 layers.
llama() {
  cat >"$work/llama$1.json" <<J
{"model_type": "llama", "hidden_size": 48, "num_hidden_layers": 6, "num_attention_heads": $1, "num_key_value_heads": $2, "head_dim": 8,
 "intermediate_size": 96, "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false}
J
}
llama 6 3; llama 8 4

# refused WHAT ALLOWED FLAG...: the check and the job end with 2, and one rank says in one message what matches ALLOWED.
# Variables: model (8 heads), seq (64), batch (sequences of a data-parallel rank; the file has 8 in all).
refused() {
  local what=$1 allowed=$2; shift 2
  local flags=(--model.hf_config "$work/llama${model:-8}.json" --training.dataset replay \
    --training.dataset_path "$here/../golden/llama_a/batches.safetensors" --training.seq_len "${seq:-64}" \
    --training.local_batch_size "${batch:-1}" --training.steps 2 --job.dump_folder "$work/run$count" "$@")
  says_no "$what" "$allowed" "$tessera" config check --ranks 8 "${flags[@]}"
  [ $((count++ % every)) != 0 ] || says_no "$what, on eight ranks" "$allowed" "$tessera" launch -n 8 -- train "${flags[@]}"
}
says_no() { # WHAT ALLOWED COMMAND...
  timeout 200 "${@:3}" >"$work/log" 2>&1
  local code=$? said
  said=$(grep -cE -- "^tessera: .*($2)|^ +.*($2)" "$work/log")
  if [ $code = 2 ] && [ "$said" -ge 1 ] && [ "$(grep -c '^tessera: ' "$work/log")" = 1 ] && [ -z "$(ls "$work"/run*/metrics.jsonl 2>/dev/null)" ]; then echo "ok    $1"; return; fi
  echo "WRONG $1: exit code $code, '$2' said $said times"; tail -n 8 "$work/log"
  failures=$((failures + 1))
}
p() { echo "--parallelism.$1"; }

seq=48 refused "degrees that do not fill the world" '8' $(p tensor_parallel_degree) 3
model=6 batch=4 refused "heads % tp" 'divisor of 6' $(p tensor_parallel_degree) 4
batch=8 refused "layers < stages" '6' $(p pipeline_parallel_degree) 8 $(p pipeline_parallel_first_stage_less_layers) 0 \
  $(p pipeline_parallel_last_stage_less_layers) 0
batch=4 refused "microbatches < stages" 'fewer than DualPipeV needs' $(p pipeline_parallel_degree) 4 $(p pipeline_parallel_schedule) DualPipeV
batch=4 refused "a microbatch that does not divide" 'pipeline_parallel_microbatch_size 3' $(p pipeline_parallel_degree) 4 \
  $(p pipeline_parallel_microbatch_size) 3
refused "experts of a model without experts" 'no experts' $(p expert_parallel_degree) 2
refused "ep that does not divide the ranks" '1, 2, 4 or 8' $(p expert_parallel_degree) 3
batch=8 seq=40 refused "sequence % 2 cp" 'context_parallel_degree' $(p context_parallel_degree) 8
batch=2 refused "a cut that is no cell" 'layers[.]2[.]attention[.]wo' $(p pipeline_parallel_degree) 2 \
  $(p pipeline_parallel_split_points) layers.2.attention.wp
batch=4 refused "cuts and stages" 'split_points' $(p pipeline_parallel_degree) 4 $(p pipeline_parallel_split_points) layers.2
refused "a policy that matches nothing" 'matches nothing' $(p reshard_rules) 'layer[.]0,never'
refused "groups of ranks" 'divisor of 8' $(p fsdp_reshard_after_forward) 3
batch=2 refused "an unknown schedule" '1F1B' $(p pipeline_parallel_degree) 2 $(p pipeline_parallel_schedule) 1F2B
batch=2 refused "asynchronous without sequence parallelism" 'disable_sequence_parallel' $(p tensor_parallel_degree) 2 \
  $(p enable_async_tensor_parallel) $(p disable_sequence_parallel)
refused "a global batch that does not divide" 'multiple of' --training.global_batch_size 12
echo "$count mistakes"
exit $((failures > 0))
