#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles lower components for aarch64, syntax and types only:
#   aarch64_test.sh SOURCE_DIR BUILD_DIR COMPILER INCLUDE_DIR:INCLUDE_DIR... COMPONENT_DIR...
# The folders have this machine's headers of MPI, LibTorch, HDF5 and Kokkos; the compiler's own come first.
set -euo pipefail
source_dir=$1 build_dir=$2 compiler=$3
IFS=: read -ra folders <<<"$4"
shift 4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-std=c++20 -fsyntax-only -DAT_PER_OPERATOR_HEADERS -DOMPI_SKIP_MPICXX -DMPICH_SKIP_MPICXX '-DTESSERA_VERSION="0"'
  "-I$source_dir/include" "-I$build_dir/include")
for folder in "${folders[@]}" /usr/include /usr/include/x86_64-linux-gnu; do flags+=(-idirafter "$folder"); done

# Below $work/units, a file for each unit: the folder of the component, then its sources. Twelve sources as one unit take
# little more time than one of them.
mkdir "$work/units"
files=0 units=0
unit() { # FOLDER FILE...
  printf '%s\n' "$@" >"$work/units/$((units++))"
  files=$((files + $# - 1))
}

# sources FOLDER: its files, less those that CMake compiles for x86 only or with CUDA.
sources() {
  find "$1" -name '*.cpp' ! -path '*/cuda/*' ! -name 'nccl_*' ! -name 'avx*.cpp' ! -name sse.cpp ! -name 'reduction_avx*.cpp' \
    ! -path '*/host/instruction_set.cpp' ! -path '*/comm/device.cpp' ! -name 'staged_*' ! -name staging_thread.cpp \
    ! -name direct_mpi.cpp ! -name pinned.cpp ! -name device_hooks.cpp ! -name device_waits.cpp | LC_ALL=C sort
}

# src/kernels: files with LibTorch in four units; functions of one have the names of those in another.
kernels=$source_dir/src/kernels
kernel_units() {
  local file tensors=() others=()
  for file in $(sources "$kernels"); do
    case $file in
      */attention_by_products.cpp | */kokkos/kernels.cpp) unit "$kernels" "$file" ;;
      */host/backend.cpp | */host/no_instruction_set.cpp | */host/host_kernels.cpp | */host/parallel_for.cpp | */normal.cpp)
        others+=("$file") ;;
      *) tensors+=("$file") ;;
    esac
  done
  unit "$kernels" "${others[@]}"
  unit "$kernels" "${tensors[@]}"
}

for component; do
  if [ "$component" = src/kernels ]; then kernel_units; continue; fi
  mapfile -t all < <(sources "$source_dir/$component")
  for ((first = 0; first < ${#all[@]}; first += 12)); do unit "$source_dir/$component" "${all[@]:first:12}"; done
done

# The files as one unit, or each half of them: two files may give one name to different things.
check() { # UNIT FOLDER FILE...
  local unit=$1 folder=$2
  shift 2
  printf '#include "%s"\n' "$@" >"$unit.cpp"
  "$compiler" "${flags[@]}" "-I$folder" "$unit.cpp" 2>"$unit.log" && return
  [ $# -gt 1 ] || { cat "$unit.log"; echo "$1 does not compile for aarch64"; return 1; }
  check "$unit" "$folder" "${@:1:$#/2}" && check "$unit" "$folder" "${@:$#/2+1}"
}
export compiler
declare -p flags >"$work/flags"
export -f check
failed=0
ls -S "$work"/units/* | xargs -P 2 -I UNIT bash -c ". '$work/flags'; mapfile -t words <UNIT; check UNIT \"\${words[@]}\"" || failed=1

((files > 80)) || { echo "only $files files were found"; failed=1; }
echo "$files files in $units units"
exit $failed
