#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera train` with device memory over MPI: two ranks share one simulated GPU, and NCCL gives a second opinion.
#   staged_train_test.sh TESSERA PRELOAD      the library to preload
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
export TESSERA_SIM_PRELOAD=$(realpath "$2")
job 2 2 <<J
[lr_scheduler]
total_steps = 8
[parallelism]
data_parallel_shard_degree = 2
J

# start GPUS FOLDER [FLAG...]: prints the exit code; the log is FOLDER.log
start() {
  TESSERA_SIM_DEVICES=$1 "$here/../mpirun.sh" 300 2 "$tessera" train "$work/job.toml" --job.dump_folder "$work/$2" \
    --training.steps 2 "${@:3}" >"$work/$2.log" 2>&1
  echo $?
}
figures() { grep -o '"loss": *[0-9.e+-]*\|"grad_norm": *[0-9.e+-]*' "$work/$1/metrics.jsonl" | tr '\n' ' '; }

check "NCCL on two GPUs" "$(start 2 nccl)" 0
check "MPI on one GPU that they share, in small pieces" "$(TESSERA_STAGING_BYTES=4096 start 1 mpi --comm.backend mpi --job.share_device true)" 0
check "steps were made" "$(figures nccl | wc -w)" 8
check "the sums agree: those of two ranks have one order" "$(figures mpi)" "$(figures nccl)"
check "no race was found" "$(cat "$work"/*.log | grep -c 'race:')" 0
finish
