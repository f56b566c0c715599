#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# TorchTitan v0.2.2's job files for models that Tessera has, each trained for 3 steps on two ranks, with the flags that make large
# ones small: another flavor, a shorter sequence, fewer ranks.
#   torchtitan_files_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
assets=$here/../assets/torchtitan
text=$here/../../share/tessera/datasets/c4_test
small="--training.steps 3 --training.seq_len 128 --training.local_batch_size 2"

# trains FILE FLAG...: code, steps and whether the loss fell.
trains() {
  local file=$1; shift
  # shellcheck disable=SC2086
  "$tessera" launch -n 2 -- train "$assets/$file.toml" --job.dump_folder "$work/$file" $small "$@" >"$work/$file.log" 2>&1
  echo "$? $(grep -c '"step": [123],' "$work/$file/metrics.jsonl" 2>/dev/null)"
}
c4="--data $text/data.jsonl --tokenizer $text"
tp="--parallelism.tensor_parallel_degree 2"
float32="--training.mixed_precision_param float32"
for file in base llama3_debug_model qwen3_moe_debug deepseek_v3_debug_model gpt_oss_debug_model; do
  check "$file, as it is but short" "$(trains $file $float32)" "0 3"
done
# shellcheck disable=SC2086
{
  check "llama3_8b" "$(trains llama3_8b $c4 --model.flavor debugmodel)" "0 3"
  check "llama3_70b" "$(trains llama3_70b $c4 --model.flavor debugmodel $tp)" "0 3"
  check "llama3_405b" "$(trains llama3_405b $c4 --model.flavor debugmodel $tp)" "0 3"
  check "qwen3_0.6b" "$(trains qwen3_0.6b $c4 --model.flavor debugmodel)" "0 3"
  check "qwen3_1.7b" "$(trains qwen3_1.7b $c4 --model.flavor debugmodel)" "0 3"
  check "qwen3_32b" "$(trains qwen3_32b $c4 --model.flavor debugmodel)" "0 3"
  check "deepseek_v3_16b" "$(trains deepseek_v3_16b $c4 --model.flavor debugmodel --parallelism.expert_parallel_degree 2)" "0 3"
  check "deepseek_v3_671b" "$(trains deepseek_v3_671b $c4 --model.flavor debugmodel)" "0 3"
}
finish
