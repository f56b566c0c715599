#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Trains 8 layers of Llama 3.1 8B on one GPU, in bfloat16 with sequences of 8192 tokens, and prints what it took.
#   speed.sh TESSERA full|short|micro|moe|micro-moe|gpt-oss|tiny|tiny-moe|tiny-gpt-oss [FLAG...]     short: sequences of 512; tiny:
#   sizes for the simulated GPU; micro: Llama 3.2 1B (the output's weights its own) with 8 microbatches of 256 tokens; moe: 4 layers of
#   Qwen3 30B-A3B; micro-moe: the same with 8 microbatches of 512 tokens; gpt-oss: 2 layers of its 20B
# Inside first_hour.sh, whose function `ranks` starts the rank.
set -euo pipefail
here=$(dirname "$(realpath "$0")") tessera=$1 size=$2; shift 2
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
batch=1 kind='"llama"' mixture=''
case $size in
  full | short)
    dim=4096 heads=32 kv=8 head=128 hidden=14336 vocab=128256 layers=8 seq=8192 steps=16
    [ "$size" = full ] || seq=512 ;;
  micro) dim=2048 heads=32 kv=8 head=64 hidden=8192 vocab=128256 layers=16 seq=256 steps=16 batch=8 ;;
  moe | micro-moe)
    dim=2048 heads=32 kv=4 head=128 hidden=768 vocab=151936 layers=4 seq=8192 steps=16 experts=128 top=8
    [ "$size" = moe ] || seq=512 batch=8 ;;
  tiny) dim=64 heads=4 kv=2 head=16 hidden=192 vocab=256 layers=2 seq=64 steps=5 ;;
  gpt-oss) dim=2880 heads=64 kv=8 head=64 hidden=2880 vocab=201088 layers=2 seq=8192 steps=16 experts=32 top=4 ;;
  tiny-moe | tiny-gpt-oss) dim=64 heads=4 kv=2 head=16 hidden=48 vocab=256 layers=2 seq=64 steps=5 experts=8 top=2 ;;
  *) echo "a size is full, short, micro, moe, micro-moe, gpt-oss, tiny, tiny-moe or tiny-gpt-oss, not '$size'" >&2; exit 2 ;;
esac
if [[ $size = *moe ]]; then
  kind='"qwen3_moe"'
  mixture="\"moe_intermediate_size\": $hidden, \"num_experts\": $experts, \"num_experts_per_tok\": $top, \"norm_topk_prob\": true,"
fi
if [[ $size = *gpt-oss ]]; then
  kind='"gpt_oss"' mixture="\"num_local_experts\": $experts, \"num_experts_per_tok\": $top, \"sliding_window\": 128,"
fi
if [[ $size != tiny* ]]; then export OMP_NUM_THREADS; OMP_NUM_THREADS=$(nproc); fi  # the host draws billions of initial values
cat >"$work/config.json" <<J
{"model_type": $kind, $mixture "hidden_size": $dim, "num_hidden_layers": $layers, "num_attention_heads": $heads, "num_key_value_heads": $kv,
 "head_dim": $head, "intermediate_size": $hidden, "vocab_size": $vocab, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "rope_theta": 500000.0}
J
python3 "$here/batches.py" "$work/batches.safetensors" $steps $batch $seq $vocab
cat >"$work/job.toml" <<J
[model]
hf_config = "$work/config.json"
[training]
dataset = "replay"
dataset_path = "$work/batches.safetensors"
seq_len = $seq
local_batch_size = 1
global_batch_size = $batch
steps = $steps
mixed_precision_param = "bfloat16"
[parallelism]
fsdp_reshard_after_forward = "never"
[activation_checkpoint]
mode = "none"
J
# A device whose peak the program does not know, as the simulated GPU, has no MFU without one.
[[ $size != tiny* ]] || set -- --metrics.peak_flops 1e12 "$@"
code=0
ranks 1 gpu "$tessera" train "$work/job.toml" --job.dump_folder "$work/run" "$@" >"$work/log" 2>&1 || code=$?
cat "$work/log"
[ $code = 0 ] || exit $code
python3 "$here/run_values.py" "$work/run" "$work/config.json" $seq <"$work/log"
case " $* " in *" --profiling.enable_profiling "*)
  find "$work/run" -path '*profile_traces*' -type f -exec cp --parents {} "$out/" \; 2>/dev/null
  echo "@ trace files: $(find "$work/run" -path '*profile_traces*' -type f | wc -l)" ;;
esac
