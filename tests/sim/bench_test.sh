#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tessera bench on simulated GPUs: it computes and communicates there. The figures mean nothing.
#   bench_test.sh TESSERA PRELOAD
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"

# bench RANKS WORD...: the exit code; the output is in $work/bench.log
bench() {
  TESSERA_SIM_PRELOAD=$preload "$here/../mpirun.sh" 300 "$1" "$tessera" bench "${@:2}" >"$work/bench.log" 2>&1
  echo $?
}
rows() { grep -cE "$1" "$work/bench.log"; }
check "products" "$(bench 2 gemm --shape 64x32x16 --dtype float32,bfloat16)" 0
check "say the device first" "$(rows '^on Tessera simulated GPU')" 1
check "have a row for each type" "$(rows '^(float32|bfloat16) 64 x 32 x 16 .* [MGT]FLOP/s ')" 2
check "kernels" "$(bench 1 kernels --rows 64 --columns 128)" 0
check "have four rows" "$(rows '^(copy|rms_norm|swiglu|adamw) 64 x 128 ')" 4
check "calls" "$(bench 2 comm --bytes 1024,65536 --registered)" 0
check "have a row for each size" "$(rows '^(all_reduce|all_gather|reduce_scatter|all_to_all|ring) (1024|65536) B  ')" 10
check "and collectives have some with registered buffers" "$(rows '^(all_reduce|all_gather|reduce_scatter) (1024|65536) B registered ')" 6
check "the limit is unknown" "$(rows ' unknown ')" 16
check "the host of the same build" "$(bench 2 comm --bytes 1024 --job.device cpu)" 0
check "has a limit" "$(rows '^ring 1024 B .* %$')" 1
finish
