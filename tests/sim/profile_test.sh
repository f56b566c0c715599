#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --profile on simulated GPUs: the traces of 2 x 2 x 2 ranks, and NVTX's ranges as a tool sees them.
#   profile_test.sh TESSERA PRELOAD TOOL
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
tool=$(realpath "$3")
job 4 2 <<J
[profiling]
profile_freq = 2
profiler_warmup = 0
J
cube="--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"
check "2 x 2 x 2 simulated GPUs" "$(on device 8 traced $cube --training.steps 2 --profile --profiling.enable_memory_snapshot)" 0
python3 "$here/check_trace.py" "$work/traced/profile_traces/iteration_2/trace.json" 8 >"$work/found"
check "the traces are right" "$(head -n 1 "$work/found")" ok
check "with forward and waiting for the GPU" "$(grep -cxE '  (forward|device)' "$work/found")" 2
check "one line says that LibTorch's profiler sees no kernels of a simulated GPU" "$(grep -c '^warning: traces are without kernels, ' "$work/traced.log")" 1
check "each rank has a snapshot of its memory" "$(grep -l '"gathered weights": [1-9]' "$work"/traced/memory_snapshot/iteration_2/rank*.json | wc -l)" 8
export NVTX_INJECTION64_PATH=$tool NVTX_NAMES=$work/names
check "a run that a tool watches" "$(on device 2 watched --parallelism.tensor_parallel_degree 2 --training.steps 2 --profile)" 0
for name in "layers.1 forward" "layers.1 backward" "tp all_gather" "tp reduce_scatter"; do
  check "it sees $name" "$(grep -cx "$name" "$NVTX_NAMES" | sed 's/[1-9][0-9]*/some/')" some
done
check "all ranges have ended" "$(grep -c open "$NVTX_NAMES")" 0
rm "$NVTX_NAMES"
check "a run without --profile" "$(on device 2 plain --parallelism.tensor_parallel_degree 2 --training.steps 2)" 0
check "has no ranges" "$(cat "$NVTX_NAMES" 2>/dev/null)" ""
finish
