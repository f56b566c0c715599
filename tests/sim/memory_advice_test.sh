#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A job that runs out of a simulated GPU's memory names changes, and the job with the first of them fits.
#   memory_advice_test.sh TESSERA PRELOAD
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
export TESSERA_SIM_KERNELS=host # fast, and the memory is the same
text_job 4 8 <<J
[parallelism]
pipeline_parallel_microbatch_size = 4
J
sed -i -e 's/"hidden_size": 64/"hidden_size": 256/' -e 's/"head_dim": 16/"head_dim": 64/' -e 's/"intermediate_size": 192/"intermediate_size": 768/' "$work/config.json"
sed -i -e 's/^seq_len = .*/seq_len = 256/' -e 's/^steps = .*/steps = 2/' "$work/job.toml"

# The keys of the first change in FOLDER.log, as flags.
first_change() {
  grep -oE "the planner's best changes[^:]*: [^;]*" "$work/$1.log" | head -n 1 |
    sed -E 's/^[^:]*: //; s/ wins .*//; s/ and /\n/g' | sed -E 's/^([^ ]+) = "?([^"]*)"?$/--\1 \2/'
}

# fits_when_changed NAME MIB RANKS MACHINE COST CHANGE [FLAG...]: what is said of the machine of the times, of the first change's
# time, and the change.
fits_when_changed() {
  local name=$1 ranks=$3 change
  export TESSERA_SIM_MEMORY_BYTES=$(($2 << 20))
  check "$name: $2 MiB are too few" "$(on device "$ranks" "$name" "${@:7}")" 3
  check "$name: says what helps" "$(grep -cE "out of memory on this GPU in .*; the planner's best changes$4: $6 wins [0-9.]+ .iB$5;" "$work/$name.log" | sed 's/[1-9]/yes/')" yes
  change=$(first_change "$name")
  # shellcheck disable=SC2086
  check "$name: fits with ${change//$'\n'/ }" "$(on device "$ranks" "$name.changed" "${@:7}" $change)" 0
  unset TESSERA_SIM_MEMORY_BYTES
}
cost=' for [+-][0-9]+ % step time'
fits_when_changed one 130 1 "" "" '[^ ]+ = [^ ]+' # float32: no machine file has its speed
fits_when_changed pipeline 110 2 "" "$cost" \
  'activation_checkpoint.mode = "selective" and activation_checkpoint.selective_ac_option = "op"' --training.mixed_precision_param bfloat16 --job.machine h100-700w --parallelism.pipeline_parallel_degree 2 --training.seq_len 512
finish
