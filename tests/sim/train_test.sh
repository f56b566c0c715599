#!/usr/bin/env bash
# `tessera train` on simulated GPUs: the host's losses, a checkpoint, and a resume on another mesh.
#   train_test.sh TESSERA PRELOAD      the library to preload
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
preload=$(realpath "$2")
job 4 2 <<J
[checkpoint]
enable = true
interval = 2
[lr_scheduler]
total_steps = 8
J

# start RANKS FOLDER [FLAG...]: prints the exit code; the log is FOLDER.log
start() { "$here/../mpirun.sh" 300 "$1" "$tessera" train "$work/job.toml" --job.dump_folder "$work/$2" "${@:3}" >"$work/$2.log" 2>&1; echo $?; }
losses() { sed -n 's/.*"loss": *\([0-9.]*\),.*/\1/p' "$work/$1/metrics.jsonl"; }
# The largest relative difference of two columns, in millionths; "lines" if they have not the same length.
apart() {
  paste <(losses "$1") <(losses "$2") |
    awk 'NF != 2 {print "lines"; bad = 1; exit} {d = ($1 - $2) / $1 * 1e6; d = d < 0 ? -d : d; if (d > most) most = d} END {if (!bad) printf "%d\n", most}'
}
cube="--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"

check "one rank of the host" "$(start 1 host --training.steps 3)" 0
export TESSERA_SIM_PRELOAD=$preload
# shellcheck disable=SC2086
check "2 x 2 x 2 simulated GPUs" "$(start 8 sim $cube --training.steps 2)" 0
check "it says where it trains" "$(grep -c 'on cuda:0' "$work/sim.log")" 1
check "a resume on 2 GPUs, tensor parallel" "$(start 2 sim --parallelism.tensor_parallel_degree 2 --training.steps 3)" 0
check "losses as on the host, to 20 millionths" "$(awk -v d="$(apart host sim)" 'BEGIN {print (d ~ /^[0-9]+$/ && d <= 20) ? "yes" : d}')" yes
check "no race was found" "$(cat "$work"/sim.log | grep -c '^race:')" 0
finish
