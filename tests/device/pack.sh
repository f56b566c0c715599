#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what first_hour.sh needs to run on a machine that has CUDA 13 and PyTorch, but no Open MPI, HDF5 or network.
#   tests/device/pack.sh [BUILD] [--nccl VERSION] [--gpu ARCHITECTURE]
# BUILD: a build with TESSERA_WITH_CUDA and TESSERA_WITH_NCCL (default: build-cuda). --nccl takes another NCCL along
# (nvidia-nccl-cu13), with the kernels of one architecture (default: 90, H100 and H200): several ranks on one GPU need 2.30.
# .device gets the programs, Debian's shared libraries that they need, and an Open MPI of its own; .device-packed/device.tar.xz is
# all of it in some 32 MiB. first_hour.sh there takes either. compute-sanitizer is the CUDA toolkit's there: the wheel
# nvidia-cuda-sanitizer-api lacks the program that starts what it looks at.
set -euo pipefail
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
build=$root/build-cuda nccl='' gpu=90 out=$root/.device packed=$root/.device-packed
while [ $# -gt 0 ]; do
  case $1 in
    --gpu) gpu=${2:?--gpu needs an architecture, as 90}; shift ;;
    --nccl) nccl=${2:?--nccl needs a version}; shift ;;
    -*) echo "unknown argument '$1'" >&2; exit 2 ;;
    *) build=$(realpath "$1") ;;
  esac
  shift
done
names=(bin/tessera tests/{kernels,parallel,comm_mpi,mesh_mpi,gradient,family_gradients,context_attention,activation_offload,step_graph}_test
  tests/kernel_bandwidth)
programs=(); for name in "${names[@]}"; do
  [ -x "$build/$name" ] || { echo "$build/$name is not there; build it first (ninja -C $build ${names[*]##*/})" >&2; exit 2; }
  programs+=("$build/$name")
done
command -v mpirun >/dev/null && command -v orted >/dev/null || { echo "no Open MPI (mpirun, orted) to pack" >&2; exit 3; }

rm -rf "$out" "$packed"
mkdir -p "$out"/{bin,lib} "$out"/openmpi/{bin,lib/openmpi,lib/pmix,share,etc}
cp "${programs[@]}" "$build/libexec/tessera/tessera-tensors" "$out/bin/"
cp "$(realpath "$(command -v mpirun)")" "$out/openmpi/bin/mpirun"
cp "$(realpath "$(command -v orted)")" "$out/openmpi/bin/orted"
cp "$(ompi_info --parsable --path pkglibdir | sed 's/.*://')"/*.so "$out/openmpi/lib/openmpi/"
pmix=$(ldconfig -p | awk '/libpmix\.so\.2 / {found = $NF} END {print found}')  # its plugins, else it would take those of the other machine's PMIx
cp "$(find "$(dirname "$(realpath "$pmix")")" "$(dirname "$pmix")/pmix2/lib" -path '*/pmix/*.so' -printf '%h\n' -quit)"/*.so "$out/openmpi/lib/pmix/"
cp -r "$(realpath "$(ompi_info --parsable --path pkgdatadir | sed 's/.*://')")" "$out/openmpi/share/openmpi"

# What the other machine has of its own: the C and C++ runtime, CUDA, LibTorch, and NCCL beside LibTorch.
theirs='^(ld-linux|lib(c|m|rt|dl|pthread|util|resolv|stdc\+\+|gcc_s|gomp)\.so|lib(torch|c10|cuda|cudart|cudnn|cublas|cusparse|cusolver|cufft|cufile|curand|cupti|nv|nccl)[-._a-zA-Z0-9]*\.so)'
needed() { ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u; }
needed "$out"/bin/* "$out"/openmpi/bin/* "$out"/openmpi/lib/*/*.so | while read -r library; do
  name=$(basename "$library")
  case $library in "$build"/*) cp -L "$library" "$out/lib/" ;; *) grep -qE "$theirs" <<<"$name" || cp -L "$library" "$out/lib/" ;; esac
done
find "$out/bin" "$out/lib" "$out/openmpi" -type f -exec strip --strip-unneeded {} \; 2>/dev/null || true

cat >"$out/env.sh" <<'ENV'
# To be sourced on the machine with the GPU.
tessera_device() {
  local device site libraries
  device=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  chmod +x "$device"/bin/* "$device"/openmpi/bin/*
  [ -e "$device/share" ] || ln -s ../share "$device/share"  # where programs look for shipped files
  site=$(python3 -c 'import os, importlib.util as u; s = u.find_spec("torch"); print(os.path.dirname(os.path.dirname(s.origin)) if s else "")')
  [ -n "$site" ] || { echo "python3 has no torch: its libraries are needed" >&2; return 3; }
  libraries=$(find "$site/nvidia" -maxdepth 3 -name lib -type d 2>/dev/null | tr '\n' ':')
  export OPAL_PREFIX=$device/openmpi OPAL_PKGLIBDIR=$device/openmpi/lib/openmpi OPAL_LIBDIR=$device/openmpi/lib OPAL_BINDIR=$device/openmpi/bin
  export OPAL_DATADIR=$device/openmpi/share OPAL_PKGDATADIR=$device/openmpi/share/openmpi OPAL_SYSCONFDIR=$device/openmpi/etc
  export PMIX_PKGLIBDIR=$device/openmpi/lib/pmix
  export PATH=$device/bin:$device/openmpi/bin:$PATH:/usr/local/cuda/bin
  export LD_LIBRARY_PATH=$device/lib:$site/torch/lib:$libraries/usr/local/cuda/lib64:/usr/local/nvidia/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  # An RPATH of libtorch_cuda.so comes before LD_LIBRARY_PATH: another NCCL must be preloaded.
  if [ -e "$device/nccl" ]; then export LD_PRELOAD=$device/nccl/libnccl.so.2; fi
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=false OMPI_MCA_opal_warn_on_missing_libcuda=0
}
tessera_device
ENV
if [ -n "$nccl" ]; then
  wheel=$(mktemp -d); trap 'rm -rf "$wheel"' EXIT
  python3 -m pip download -q --no-deps -d "$wheel" "nvidia-nccl-cu13==$nccl"
  (cd "$wheel" && python3 -m zipfile -e ./nvidia_nccl_cu13*.whl .)
  mkdir "$out/nccl" && "$root/tests/device/cut_nccl.py" "$wheel/nvidia/nccl/lib/libnccl.so.2" "$out/nccl/libnccl.so.2" "$gpu"
  strip --strip-unneeded "$out/nccl/libnccl.so.2"
fi
mkdir "$packed" && tar -C "$root" -cf - .device | xz -T0 >"$packed/device.tar.xz"
echo "packed $(($(du -sb "$out" | cut -f1) >> 20)) MiB into $(($(stat -c %s "$packed/device.tar.xz") >> 20)) MiB of .device-packed"
