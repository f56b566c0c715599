#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera train` in float8 on simulated GPUs, which multiply bytes, beside the host, which emulates the products.
#   float8_test.sh TESSERA PRELOAD      the library to preload
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
job 2 2 <<J
[debug]
deterministic = true
J
sed -i -e 's/^mixed_precision_param = .*/mixed_precision_param = "bfloat16"/' -e 's/^steps = .*/steps = 3/' "$work/job.toml"
export TESSERA_SIM_KERNELS=host

# The largest relative difference of two columns of losses, in hundredths of a per cent; "lines" if they have not the same length.
apart() {
  paste <(losses "$1") <(losses "$2") |
    awk 'NF != 2 {print "lines"; bad = 1; exit} {d = ($1 - $2) / $1 * 1e4; d = d < 0 ? -d : d; if (d > most) most = d} END {if (!bad) printf "%d\n", most}'
}
layers() { grep -h "linear layers" "$work/$1.log" | sed 's/^info: //'; }

tp2="--parallelism.tensor_parallel_degree 2"
for recipe in tensorwise rowwise rowwise_with_gw_hp; do
  keys="--model.converters quantize.linear.float8 --quantize.linear.float8.recipe_name $recipe"
  check "$recipe on the host" "$(on host 1 host-$recipe $keys)" 0
  check "$recipe on a GPU" "$(on device 1 gpu-$recipe $keys)" 0
  check "the GPU multiplies bytes" "$(layers gpu-$recipe)" "float8 $recipe in 15 of 15 linear layers"
  check "$recipe on two GPUs" "$(on device 2 tp-$recipe $keys $tp2)" 0
  for run in gpu tp; do
    check "losses of $run-$recipe as the host's, to 0.2 %" \
      "$(awk -v d="$(apart host-$recipe $run-$recipe)" 'BEGIN {print (d ~ /^[0-9]+$/ && d <= 20) ? "yes" : d}')" yes
  done
done
# Weights that are rounded before they are gathered, in one reduction of scales.
gather="--model.converters quantize.linear.float8 --quantize.linear.float8.enable_fsdp_float8_all_gather"
check "gathered bytes on two hosts" "$(on host 2 host-gather $gather)" 0
check "gathered bytes on two GPUs" "$(on device 2 gpu-gather $gather)" 0
check "with masters in host memory" "$(on device 2 offload-gather $gather --training.enable_cpu_offload)" 0
for run in gpu offload; do
  check "losses of $run-gather as the host's, to 0.2 %" \
    "$(awk -v d="$(apart host-gather $run-gather)" 'BEGIN {print (d ~ /^[0-9]+$/ && d <= 20) ? "yes" : d}')" yes
done
check "they are not those of weights rounded afterwards" \
  "$(on device 2 later --model.converters quantize.linear.float8)/$(losses later | cmp -s - <(losses gpu-gather) && echo same)" 0/

check "they are not those of bfloat16" "$(on device 1 plain)/$(losses plain | cmp -s - <(losses gpu-rowwise) && echo same)" 0/

# Emulated: by key, in float32, and MXFP8.
float8="--model.converters quantize.linear.float8"
check "emulated by key" "$(on device 1 emulated $float8 --quantize.linear.float8.emulate)" 0
check "it says so" "$(layers emulated)" "float8 tensorwise, emulated, in 15 of 15 linear layers"
check "emulated in float32" "$(on device 1 wide $float8 --training.mixed_precision_param float32)" 0
check "it says so, too" "$(layers wide)" "float8 tensorwise, emulated, in 15 of 15 linear layers"
check "MXFP8 on the host" "$(on host 1 host-mx --model.converters mx)" 0
check "MXFP8" "$(on device 1 mx --model.converters mx)" 0
check "is emulated" "$(layers mx)" "mxfp8 floor, emulated, in 14 of 15 linear layers"
check "losses as the host's, to 0.2 %" "$(awk -v d="$(apart host-mx mx)" 'BEGIN {print (d ~ /^[0-9]+$/ && d <= 20) ? "yes" : d}')" yes

# A GPU without products of bytes: one message, and what to do helps.
export TESSERA_SIM_CAPABILITY=80
check "an older GPU is refused" "$(on device 2 older $float8 $tp2)" 3
check "once, with what to do" "$(grep -c 'does not multiply in float8: set quantize.linear.float8.emulate = true' "$work/older.log")" 1
check "which it does" "$(on device 1 older $float8 --quantize.linear.float8.emulate)" 0

check "no race was found" "$(cat "$work"/*.log | grep -c '^race:')" 0
finish
