#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera train` in deterministic mode on simulated GPUs: one run's bits on every number of ranks, over NCCL and MPI, and
# when it is resumed; and environments that cannot promise them.
#   deterministic_train_test.sh TESSERA PRELOAD      the library to preload
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
export TESSERA_SIM_PRELOAD=$(realpath "$2")
job 1 2 <<J
[lr_scheduler]
total_steps = 8
[checkpoint]
enable = true
interval = 2
[debug]
deterministic = true
J

# start RANKS FOLDER STEPS [FLAG...]: prints the exit code; the log is FOLDER.log
start() {
  "$here/../mpirun.sh" 300 "$1" "$tessera" train "$work/job.toml" --job.dump_folder "$work/$2" --training.steps "$3" \
    "${@:4}" >"$work/$2.log" 2>&1
  echo $?
}
figures() { grep -o '"loss": *[0-9.e+-]*\|"grad_norm": *[0-9.e+-]*' "$work/$1/metrics.jsonl" | tr '\n' ' '; }

check "one rank" "$(start 1 one 3)" 0
check "four ranks" "$(start 4 four 3)" 0
check "four ranks over MPI" "$(start 4 mpi 3 --comm.backend mpi)" 0
check "two ranks" "$(start 2 resumed 2)" 0
check "a resume on four" "$(start 4 resumed 3)" 0
check "steps were made" "$(figures one | wc -w)" 12
check "four ranks have the bits of one" "$(figures four)" "$(figures one)"
check "so they have over MPI" "$(figures mpi)" "$(figures one)"
check "so they have when the run is resumed" "$(figures resumed)" "$(figures one)"
check "no race was found" "$(cat "$work"/*.log | grep -c 'race:')" 0

check "the program tells both versions of NCCL" \
  "$(LD_PRELOAD=$TESSERA_SIM_PRELOAD "$tessera" --version | grep -cE '^  nccl +[0-9.]+, built with [0-9.]+$')" 1

export CUBLAS_WORKSPACE_CONFIG=:0:0
check "workspaces of cuBLAS that are not deterministic" "$(start 1 refused 1)" 3
check "are refused in words" "$(grep -c 'CUBLAS_WORKSPACE_CONFIG is ":0:0"' "$work/refused.log")" 1
finish
