#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Jobs on simulated GPUs that fail: which rank is named, why, with which exit code, and after how long.
#   failures_test.sh TESSERA PRELOAD planned              memory that is used up, a GPU that is lost
#   failures_test.sh TESSERA PRELOAD random FIRST LAST    seeds: one of four failures of one of four ranks, somewhere in a step
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
export TESSERA_SIM_PRELOAD; TESSERA_SIM_PRELOAD=$(realpath "$2")
shift 2
job 4 4 <<J
[comm]
train_timeout_seconds = 10
save_traces_folder = "traces"
J
inject=--debug.inject_faults
# 15 s, and longer where the machine has more to do than it has cores.
limit() { echo "${TESSERA_FAILURE_LIMIT:-$(awk -v cores="$(nproc)" '{print 15 * (1 + $1 / cores)}' /proc/loadavg)}"; }

# start FOLDER RANKS [FLAG...]: prints the exit code; the log is FOLDER.log, and FOLDER.seconds is the time from the last step's end, or
# the start, to the job's end.
start() {
  run "$@"
  local code=$?
  # Open MPI 4.1's mpirun sometimes crashes when all ranks have ended, and their code is lost.
  if [ $code = 139 ] && grep -q 'PMIx_server_finalize' "$work/$1.log"; then
    rm -rf "${work:?}/$1"
    run "$@"
    code=$?
  fi
  echo $code
  echo $(($(date +%s) - $(stat -c %Y "$work/$1.begun" "$work/$1/metrics.jsonl" 2>/dev/null | sort -n | tail -n 1))) >"$work/$1.seconds"
}
run() {
  touch "$work/$1.begun"
  "$here/../mpirun.sh" 300 "$2" "$tessera" train "$work/job.toml" --job.dump_folder "$work/$1" "${@:3}" >"$work/$1.log" 2>&1
}
says() { grep -qE -- "$2" "$work/$1.log" && echo yes || echo no; }
in_time() { awk -v limit="$(limit)" '{print ($1 <= limit) ? "yes" : $1 " s"}' "$work/$1.seconds"; }
degrees() { for d in "$@"; do echo "--parallelism.${d%=*}_degree ${d#*=}"; done; }
pp2=$(degrees pipeline_parallel=2)
pp2dp2=$(degrees pipeline_parallel=2 data_parallel_shard=2)
pp2tp2=$(degrees pipeline_parallel=2 tensor_parallel=2)
dp2tp2=$(degrees data_parallel_shard=2 tensor_parallel=2)

planned() {
  local name=$1 ranks=$2 flags=$3 rank=$4 words=$5 code=$6
  # shellcheck disable=SC2086
  check "$name: ends with $code" "$(start "$name" "$ranks" $flags)" "$code"
  check "$name: rank $rank says why" "$(says "$name" "(rank $rank on [^ ]*|^tessera): $words")" yes
  check "$name: in time ($(cat "$work/$name.seconds") s)" "$(in_time "$name")" yes
}
all_planned() {
  local memory='out of memory on this GPU in layers[.][0-9]+ (forward|backward): could not allocate [0-9.]+ .iB, .* are free; tensors take [0-9.]+ .iB [(]weights .*, gradients .*, moments .*[)]; .*[(]fragmentation[)]'
  local remedies="the planner's best changes: [^;]* wins .*; each of these is enough alone, by estimate: .*data_parallel_shard_degree = 2 .*training.enable_cpu_offload = true"
  TESSERA_SIM_MEMORY_BYTES=$((4 << 20)) planned small 2 "$pp2" 0 "$memory.*; $remedies" 3
  planned first_stage 2 "$pp2 $inject 2:memory:0:6" 0 "$memory" 3
  planned last_stage 2 "$pp2 $inject 2:memory:1:9" 1 "$memory" 3
  planned mesh 4 "$pp2tp2 $inject 2:memory:2:17" 2 "$memory" 3
  TESSERA_SIM_NCCL_FAIL=ncclCommSplit:3:1 planned split 4 "$pp2dp2" 1 'ncclCommSplit failed: unhandled system error' 7
  TESSERA_SIM_NCCL_FAIL=memory:5:1 planned buffers 2 "$pp2" 1 'out of memory on this GPU: NCCL has too little for its buffers' 3
  TESSERA_SIM_NCCL_FAIL=ncclCommFinalize:1:1 planned end 2 "$pp2 --comm.save_timeout_seconds 8" '[01]' 'the job is done, and has not ended for 8 s; look at the network' 7
  TESSERA_SIM_FAIL=address:900:1 planned address 2 "$pp2" 1 'earlier work on this GPU failed: an illegal memory access .*; the last kernels that this rank launched were [a-z_]+, ' 3
  TESSERA_SIM_FAIL=lost:1500:3 planned lost 4 "$pp2dp2" 3 'earlier work on this GPU failed: unknown error .*; the last kernels that this rank launched were [a-z_]+, ' 3
}

random() {
  local seed=$1 kinds=(die freeze memory lost) meshes=("$pp2dp2" "$pp2tp2" "$dp2tp2") kind mesh rank name words code flags
  RANDOM=$((seed * 7919))
  kind=${kinds[seed % 4]} mesh=${meshes[seed % 3]} rank=$(((seed + seed / 4) % 4)) name=seed$1
  flags="$mesh $inject $((2 + RANDOM % 2)):$kind:$rank:$((1 + RANDOM % 20))"
  case $kind in
    die) code=137 words="process rank $rank with PID" ;;
    freeze) code=7 words="rank $rank [(]node .*[)] (has (not entered|begun but not ended)|is stopped)" ;;
    memory) code=3 words="(rank $rank on [^ ]*: |^tessera: |rank $rank .*)out of memory on this GPU in" ;;
    lost) code=3 words="(rank $rank on [^ ]*: |^tessera: )earlier work on this GPU failed: unknown error"
      flags=$mesh TESSERA_SIM_FAIL=lost:$((800 + RANDOM % 2000)):$rank ;;
  esac
  export TESSERA_SIM_FAIL=${TESSERA_SIM_FAIL-}
  # shellcheck disable=SC2086
  check "$name: $kind of rank $rank ends with $code" "$(start "$name" 4 $flags)" "$code"
  check "$name: the rank is named" "$(says "$name" "$words")" yes
  check "$name: in time ($(cat "$work/$name.seconds") s; ${flags#"$mesh"} $TESSERA_SIM_FAIL)" "$(in_time "$name")" yes
  unset TESSERA_SIM_FAIL
}

case $1 in
  planned) all_planned ;;
  random) for ((seed = $2; seed <= $3; seed++)); do random "$seed"; done ;;
esac
finish
