# SPDX-License-Identifier: Apache-2.0
# What tests of the program on simulated GPUs share: `. on_device.sh PRELOAD` after job.sh.
preload=$(realpath "$1")
# Processors have other bits. oneDNN's float32 products, which the device does not take, are left out.
export TESSERA_CPU=avx2
unset ONEDNN_MAX_CPU_ISA DNNL_MAX_CPU_ISA
grep -q avx512f /proc/cpuinfo || export ONEDNN_MAX_CPU_ISA=AVX

# on host|device RANKS FOLDER [FLAG...]: trains and prints the exit code; the log is FOLDER.log
on() {
  local library=
  [ "$1" = host ] || library=$preload
  TESSERA_SIM_PRELOAD=$library "$here/../mpirun.sh" 300 "$2" "$tessera" train "$work/job.toml" --job.dump_folder "$work/$3" "${@:4}" >>"$work/$3.log" 2>&1
  echo $?
}
losses() { sed -n 's/.*"loss": *\([0-9.]*\),.*/\1/p' "$work/$1/metrics.jsonl"; }
