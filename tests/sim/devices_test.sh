#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What ranks find where their GPUs, drivers and libraries do not fit together: one message, exit code 3, in seconds.
#   devices_test.sh TESSERA PRELOAD SECOND     the library to preload; a second library by the name of NCCL's
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
preload=$(realpath "$2") second=$(realpath "$3")
job 2 4 </dev/null
# Exported: the ranks read them.
export preload second devices=2 other=

# start NAME [FLAG...]: two ranks that see `devices` GPUs; prints the exit code. The log is NAME.log, the time in ms NAME.ms.
# The variable in `other` is for rank 1 alone.
start() {
  local began; began=$(date +%s%N)
  # shellcheck disable=SC2016
  "$here/../mpirun.sh" 120 2 bash -c 'export LD_PRELOAD=$preload TESSERA_SIM_DEVICES=$devices
    [ "$OMPI_COMM_WORLD_RANK" = 0 ] || [ -z "$other" ] || export "$other"
    exec "$@"' rank "$tessera" train "$work/job.toml" --job.dump_folder "$work/$1" --training.steps 1 "${@:2}" >"$work/$1.log" 2>&1
  echo $?
  echo $((($(date +%s%N) - began) / 1000000)) >"$work/$1.ms"
}
# 10 s, and longer where the machine has more to do than it has cores.
limit=$(awk -v cores="$(nproc)" '{print 10 * (1 + $1 / cores)}' /proc/loadavg)
# refused NAME WORDS [FLAG...]: code 3, the words in one line, once, in time.
refused() {
  check "$1: code" "$(start "${@:1:1}" "${@:3}")" 3
  check "$1: words" "$(grep -cF -- "$2" "$work/$1.log")" 1
  check "$1: time" "$(awk -v l="$limit" '{print ($1 <= 1000 * l) ? "in time" : $1 " ms"}' "$work/$1.ms")" "in time"
}

other="TESSERA_SIM_DRIVER=12040"
refused broken_driver "1 of 2 ranks have no GPU, first rank 1 on $(hostname) (the driver is older than the runtime); look at \`nvidia-smi\` there, or exclude that node (srun --exclude=$(hostname))"
other="TESSERA_SIM_DEVICE_NAME=other"
refused other_gpu "ranks have different GPUs: rank 0 on $(hostname) has Tessera simulated GPU, rank 1 on $(hostname) has other; ask for nodes of one kind"
other="TESSERA_SIM_NCCL_VERSION=22703"
refused old_nccl "rank 1 on $(hostname) has loaded NCCL 22703 from"
other="TESSERA_SIM_NCCL_VERSION=22999"
refused other_nccl "and rank 1 on $(hostname) has NCCL 22999; load the same module on all nodes"
other="LD_PRELOAD=$second:$preload"
refused second_nccl "rank 1 on $(hostname) has more than one NCCL in its process"
other=
devices=1
refused shared_gpu "ranks 0 and 1 on $(hostname) have the same GPU (7a5ee507"
refused shared_by_nccl "have the same GPU (7a5ee507" --job.share_device true
check "ranks that may share their GPU" "$(NCCL_MULTI_RANK_GPU_ENABLE=1 TESSERA_SIM_NCCL_VERSION=23000 start shared --job.share_device true)" 0
check "where GPU and cores are" "$(grep -c "placement on $(hostname): local rank 0 GPU 0000:01:00.0, core.*; local rank 1 GPU 0000:01:00.0" "$work/shared.log")" 1
devices=0
refused no_gpu "no rank has a GPU (rank 0 on $(hostname): no CUDA-capable device is detected); look at \`nvidia-smi\` there, or train on the host with job.device = \"cpu\""
check "the host, as asked" "$(start host --device cpu)" 0
check "it says so" "$(grep -c 'this build has GPU support and trains on the host, as job.device = "cpu" asks' "$work/host.log")" 1
finish
