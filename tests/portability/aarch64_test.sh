#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compiles the lower components for aarch64, syntax and types only:
#   aarch64_test.sh SOURCE_DIR BUILD_DIR COMPILER INCLUDE_DIR:INCLUDE_DIR...
# The folders have this machine's headers of MPI, LibTorch, HDF5 and Kokkos; the compiler's own come first.
set -euo pipefail
source_dir=$1 build_dir=$2 compiler=$3
IFS=: read -ra folders <<<"$4"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

flags=(-std=c++20 -fsyntax-only -DAT_PER_OPERATOR_HEADERS "-I$source_dir/include" "-I$build_dir/include")
for folder in "${folders[@]}" /usr/include /usr/include/x86_64-linux-gnu; do flags+=(-idirafter "$folder"); done

# check NAME FOLDER FILE...: the files as one translation unit, which is many times faster than one each.
failed=0 files=0
check() {
  local name=$1 folder=$2 file
  shift 2
  for file in "$@"; do printf '#include "%s"\n' "$file"; done >"$work/$name.cpp"
  files=$((files + $#))
  "$compiler" "${flags[@]}" "-I$folder" "$work/$name.cpp" || { echo "$name does not compile for aarch64"; failed=1; }
}

# sources FOLDER: its files, less those that CMake compiles for x86 only or with CUDA.
sources() {
  find "$1" -name '*.cpp' ! -path '*/cuda/*' ! -path '*nccl*' ! -name 'avx*.cpp' ! -name sse.cpp \
    ! -name 'reduction_avx*.cpp' ! -path '*/host/instruction_set.cpp' | sort
}

for component in base config; do
  for file in $(sources "$source_dir/src/$component"); do
    check "$component-$(basename "$file" .cpp)" "$source_dir/src/$component" "$file"
  done
done

# Files with LibTorch in one unit, but for those whose functions have the names of others.
kernels=$source_dir/src/kernels tensors=()
for file in $(sources "$kernels"); do
  case $file in
    */host/backend.cpp | */attention_by_products.cpp) check "kernels-$(basename "$file" .cpp)" "$kernels" "$file" ;;
    */kokkos/kernels.cpp | */host/no_instruction_set.cpp | */host/host_kernels.cpp | */host/parallel_for.cpp | */normal.cpp)
      check "kernels-$(basename "$file" .cpp)" "$kernels" "$file" ;;
    *) tensors+=("$file") ;;
  esac
done
check kernels "$kernels" "${tensors[@]}"

((files > 50)) || { echo "only $files files were found"; failed=1; }
echo "$files files"
exit $failed
