#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Operators as tasks of streams, and random delays of every task: in deterministic mode the host's bits, whatever the delays.
#   delays_test.sh TESSERA PRELOAD SEED...
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
shift 2
job 4 2 <<J
[checkpoint]
enable = true
interval = 1
async_mode = "async"
[debug]
deterministic = true
J
shard="--parallelism.data_parallel_shard_degree 2"
pp="--parallelism.pipeline_parallel_degree 2 $shard" tp="--parallelism.tensor_parallel_degree 2 $shard"

export TESSERA_SIM_KERNELS=host TESSERA_SIM_OPERATORS=queued
for mesh in pp tp; do
  check "$mesh on the host" "$(on host 4 $mesh ${!mesh} --training.steps 2)" 0
  wanted=$(weights $mesh 2)
  for seed; do
    check "$mesh, delays of seed $seed" "$(TESSERA_SIM_DELAY_SEED=$seed on device 4 $mesh-$seed ${!mesh} --training.steps 2)" 0
    check "losses" "$(losses $mesh-$seed)" "$(losses $mesh)"
    check "weights" "$(weights $mesh-$seed 2)" "$wanted"
    rm -rf "$work/$mesh-$seed" "$work/$mesh-$seed.hf"
  done
done
check "no race was found" "$(cat "$work"/*.log | grep -c '^race:')" 0
finish
