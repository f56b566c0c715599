#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera train` with steps as CUDA graphs, on simulated GPUs: the bits of steps that are issued call by call, and why there are
# no graphs where there are none.
#   graphs_test.sh TESSERA PRELOAD [mixtures]      the library to preload; mixtures: more of them, and nothing else
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
job 2 2 <<J
[checkpoint]
enable = true
interval = 2
J
sed -i -e 's/^steps = .*/steps = 4/' "$work/job.toml"
export TESSERA_SIM_KERNELS=host

# What the log says of graphs, without its beginning.
said() { sed -n 's/^info: compile.enable: //p' "$work/$1.log"; }
made="forward and backward of a step are a CUDA graph from now on"
no="steps are no CUDA graphs, as"

gathers() { grep -oE '"fsdp/gather(s|_bytes)": [0-9]+' "$work/$1/metrics.jsonl"; }

# same RANKS NAME [FLAG...]: with graphs and without.
same() {
  check "$2: call by call" "$(on device "$1" "$2" "${@:3}")" 0
  check "$2: graphs" "$(on device "$1" "$2-graphs" --compile.enable "${@:3}")" 0
  check "$2: it says so" "$(said "$2-graphs")" "$made"
  check "$2: losses, all digits" "$(losses "$2-graphs")" "$(losses "$2")"
  check "$2: weights, all bits" "$(weights "$2-graphs" 4)" "$(weights "$2" 4)"
  check "$2: as many gathers" "$(gathers "$2-graphs")" "$(gathers "$2")"
}
clean() {
  check "graphs end before communicators" "$(cat "$work"/*.log | grep -c 'ended before the graphs')" 0
  check "no race was found" "$(cat "$work"/*.log | grep -c 'race:')" 0
}
mixture="--model.hf_config $work/mixture.json --training.mixed_precision_param bfloat16"
shared="$mixture --parallelism.expert_parallel_degree 2 --parallelism.expert_parallel_capacity_factor 2"
cat >"$work/mixture.json" <<J
{"model_type": "mixtral", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
 "intermediate_size": 96, "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "rope_theta": 500000.0,
 "num_local_experts": 4, "num_experts_per_tok": 2}
J
if [ "${3-}" = mixtures ]; then
  same 2 mixture $mixture
  same 2 once $shared --parallelism.expert_parallel_comm_backend deepep
  clean; finish; exit
fi
same 1 one
same 2 float8 --training.mixed_precision_param bfloat16 --model.converters quantize.linear.float8 --activation_checkpoint.mode selective
same 2 pipeline --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_microbatch_size 1 --debug.deterministic
other="--parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_microbatch_size 1 --parallelism.pipeline_parallel_microbatch_steps 3:2"
check "other microbatches" "$(on device 2 other $other)" 0
check "in two graphs" "$(on device 2 other-graphs $other --compile.enable)/$(said other-graphs)" "0/$made
$made"
check "have the same losses" "$(losses other-graphs)" "$(losses other)"
same 2 capacity $shared
pairs="$shared --training.local_batch_size 4 --parallelism.pipeline_parallel_degree 2 --parallelism.pipeline_parallel_schedule DualPipeV"
same 4 pairs $pairs
check "one after the other" "$(on device 4 apart $pairs --parallelism.pipeline_parallel_expert_parallel_overlap false)" 0
check "the same losses" "$(losses apart)" "$(losses pairs)"
same 2 tensor --parallelism.tensor_parallel_degree 2 --parallelism.enable_async_tensor_parallel --activation_checkpoint.mode full

check "waits of graphs" "$(graphs_waited tensor-graphs)" yes

check "a run that ends early" "$(on device 1 resumed --compile.enable --training.steps 2 --lr_scheduler.total_steps 4)" 0
check "is resumed" "$(on device 1 resumed --compile.enable --lr_scheduler.total_steps 4)" 0
check "with the same losses" "$(losses resumed)" "$(losses one)"

# none NAME RANKS REASON [FLAG...]
none() {
  check "$1" "$(on device "$2" "$1" --compile.enable "${@:4}")" 0
  check "$1: the reason" "$(said "$1")" "$no $3"
}
none profile 1 "profiling.enable_profiling records each call" --profiling.enable_profiling
none offload 1 "the host has a part of the weights (training.enable_cpu_offload)" --training.enable_cpu_offload
none activations 1 "activations are in host memory (activation_checkpoint.offload)" --activation_checkpoint.offload
none mixture-float32 1 "the host multiplies expert by expert (training.mixed_precision_param)" --model.hf_config "$work/mixture.json"
sed 's/"intermediate_size": 96/"intermediate_size": 100/' "$work/mixture.json" >"$work/odd.json"
none mixture-odd 1 "the host multiplies expert by expert, whose widths are no multiples of 8" --model.hf_config "$work/odd.json" \
  --training.mixed_precision_param bfloat16
check "on an older GPU" "$(TESSERA_SIM_CAPABILITY=80 on device 1 mixture-80 --compile.enable $mixture)" 0
check "the reason" "$(said mixture-80)" "$no this GPU multiplies expert by expert"
none experts 2 "the host sends tokens to other ranks' experts; with parallelism.expert_parallel_capacity_factor it need not" $mixture \
  --parallelism.expert_parallel_degree 2
none checked 2 "debug.check_collectives looks at each call" --debug.check_collectives
none staged 2 "communication goes through the host (comm.backend)" --comm.backend mpi
none documents 1 "each batch has documents of other lengths" --training.document_mask --training.document_end_id 7
check "on the host" "$(on host 1 host --compile.enable)" 0
check "the reason" "$(said host)" "$no CUDA graphs need a GPU"
check "other components" "$(on device 1 others --compile.enable --compile.components loss)" 0
check "ask for no graphs" "$(said others)" ""

clean; finish
