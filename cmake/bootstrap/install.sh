# SPDX-License-Identifier: Apache-2.0
# What ./bootstrap installs: Debian packages, LibTorch, the Python packages of the tests. Sourced, not run. It needs phases.sh,
# $root, $cache, and the versions that bootstrap names.

# --- Debian packages ----------------------------------------------------------------------------------------------------
missing_packages() { # PACKAGE...: prints those that are not installed (dpkg-query fails when it does not know one)
  local installed package
  installed=" $( (dpkg-query -W -f='${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true) | sed -n 's/^installed //p' | tr '\n' ' ') "
  for package in "$@"; do [[ $installed == *" $package "* ]] || printf '%s\n' "$package"; done
}

has_apt() { command -v apt-get >/dev/null && command -v dpkg-query >/dev/null; }

# dpkg writes an "Unpacking" and a "Setting up" line for each package, dependencies included; apt says how many it upgrades
# and how many it installs.
count_packages() { # LOG
  local total; total=$(sed -n 's/^\([0-9]*\) upgraded, \([0-9]*\) newly installed.*/\1 + \2/p' "$1")
  echo "$(grep -c -e '^Unpacking' -e '^Setting up' "$1") $((2 * (${total:-0}))) steps"
}

install_packages() {
  if ! has_apt; then
    say "apt-get is not installed: using the compiler, CMake, MPI, HDF5, Kokkos and libraries of this machine (see INSTALL.md)"; return
  fi
  local missing; mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} != 0 ] || return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then as_root=(sudo)
    else die 3 "these packages are missing; run this line as root, then run ./bootstrap again:
  apt-get update && apt-get install --no-install-recommends ${missing[*]}"; fi
  fi
  begin "${#missing[@]} Debian packages: ${missing[*]}"
  # A broken third-party source must not stop us: what we need may come from the others. RUNLEVEL=1 keeps daemons from starting.
  [ ${#as_root[@]} = 0 ] || sudo -v # asks for the password here, where there is a terminal
  shown apt-update count_lines ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive apt-get update -q || say "apt-get update had errors; continuing"
  shown apt-install count_packages ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 \
    apt-get install -q -y --no-install-recommends "${missing[@]}" || die 3 "the packages could not be installed"
  finish
}

# --- LibTorch -------------------------------------------------------------------------------------------------------------
torch_in() { # DIR: prints the folder with include/ and lib/ of the LibTorch in DIR
  local candidate
  for candidate in "$1" "$1"/torch "$1"/lib/python3*/site-packages/torch; do
    if [ -e "$candidate/lib/libtorch_cpu.so" ] && [ -d "$candidate/include/torch" ]; then printf '%s\n' "$candidate"; return 0; fi
  done
  return 1
}

named_torch() { # the LibTorch that the environment names, if any
  local entry entries
  if [ -n "${TESSERA_LIBTORCH:-}" ]; then
    torch_in "$TESSERA_LIBTORCH" || die 3 "no LibTorch in TESSERA_LIBTORCH=$TESSERA_LIBTORCH; name the folder that holds include/ and lib/libtorch_cpu.so"
    return
  fi
  IFS=':;' read -ra entries <<<"${CMAKE_PREFIX_PATH:-}"
  for entry in "${entries[@]}"; do ! torch_in "$entry" || return 0; done
}

unresolved() { ldd "$1" 2>/dev/null | grep -q 'not found'; }

# Megabytes in the folder that pip fills, downloads included: pip writes no progress into a log.
filling='' filling_megabytes=0
count_megabytes() { echo "$(du -sm "$filling" 2>/dev/null | cut -f1) $filling_megabytes MB"; }

pip_install() { # VENV REQUIREMENT...
  local venv=$1; shift
  mkdir -p "$venv/tmp"
  TMPDIR=$venv/tmp shown pip count_megabytes "$venv/bin/python" -m pip install --disable-pip-version-check --no-input --retries 10 --timeout 60 "$@" || die 3 "pip could not install $*; can this machine reach PyPI?"
  rm -rf "$venv/tmp"
}

# Made aside and renamed into its place: a LibTorch in the cache is a whole one.
make_torch() { # VENV
  local part=$1.part
  begin "LibTorch $torch_version (0.5 GB to download) into $1"
  rm -rf "$part"
  local python=/usr/bin/python3; [ -x $python ] || python=python3
  shown venv count_lines "$python" -m venv "$part" || die 3 "python3 -m venv failed; on Debian it needs the package python3-venv"
  filling=$part filling_megabytes=$((torch_megabytes + 500))
  pip_install "$part" --no-deps "torch==$torch_version"
  rm -rf "$1"; mv "$part" "$1"
  finish
}

has_torch() { compgen -G "$cache/libtorch-$torch_version/lib/python3*/site-packages/torch-$torch_version*.dist-info/RECORD" >/dev/null; }

provide_torch() { # sets $torch
  torch=$(named_torch)
  if [ -n "$torch" ]; then say "using the LibTorch in $torch"; return; fi
  local venv=$cache/libtorch-$torch_version
  has_torch || make_torch "$venv"
  torch=$(torch_in "$venv") || { make_torch "$venv"; torch=$(torch_in "$venv"); }
  if unresolved "$torch/lib/libtorch_cpu.so"; then
    begin "CUDA runtime libraries that libtorch_cpu.so needs"
    filling=$venv filling_megabytes=0
    pip_install "$venv" --no-deps "${cuda_wheels[@]}"
    finish
  fi
  if [ $cuda = ON ] && [ -z "$compile_only" ] && unresolved "$torch/lib/libtorch_cuda.so"; then
    begin "NVIDIA libraries that libtorch_cuda.so needs (2 GB to download)"
    filling=$venv filling_megabytes=0
    pip_install "$venv" "torch==$torch_version"
    finish
  fi
}

# The simulated GPU (tests/sim) is compiled with the headers of the CUDA runtime.
has_cuda_headers() {
  local header
  for header in cuda_runtime_api.h crt/host_defines.h; do
    compgen -G "$torch/../nvidia/cu13/include/$header" >/dev/null || compgen -G "/usr/local/cuda-13.*/include/$header" >/dev/null || return 1
  done
}

# Into our own LibTorch's environment; beside a LibTorch of somebody else they would be in the wrong place.
provide_cuda_headers() {
  local venv=$cache/libtorch-$torch_version
  if has_cuda_headers || [ "$torch" != "$(torch_in "$venv")" ]; then return; fi
  begin "headers of the CUDA runtime, for the simulated GPU"
  filling=$venv filling_megabytes=0
  pip_install "$venv" --no-deps "${cuda_wheels[@]}"
  finish
}

# --- Python packages that read what Tessera writes, for the tests ------------------------------------------------------------
test_python=$cache/test-python

has_test_python() { cmp -s "$root/tests/interchange/requirements.txt" "$test_python/requirements.txt" && [ -x "$test_python/bin/python-torch" ]; }

# h5py and transformers, with the PyTorch of our LibTorch if it can be imported (a wheel without its NVIDIA libraries cannot,
# unless a toolkit has them). Without the registry, the tests that need them are not registered.
provide_test_python() {
  local wanted=$root/tests/interchange/requirements.txt part=$test_python.part site
  ! has_test_python || { tell_what_is_left_out; return 0; }
  begin "Python packages of the tests in $test_python"
  rm -rf "$part"
  local python=/usr/bin/python3; [ -x $python ] || python=python3
  filling=$part
  shown test-python count_lines "$python" -m venv "$part" &&
    shown test-python count_megabytes "$part/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps -r "$wanted" ||
    { say "could not install them; the tests that need h5py and transformers are not registered"; return 0; }
  site=$(echo "$part"/lib/python3*/site-packages)
  dirname "$torch" >"$site/torch.pth"
  if ldconfig -p | grep -q libcublas.so.13; then
    shown test-python count_megabytes "$part/bin/python" -m pip install --disable-pip-version-check --no-input --no-deps "${torch_import_wheels[@]}" || true
  fi
  cat >"$part/bin/python-torch" <<'WRAPPER' && chmod +x "$part/bin/python-torch"
#!/bin/sh
# The python beside this, with the NVIDIA libraries of its environment for `import torch`.
here=$(dirname "$(realpath "$0")")
libraries=$(echo "$here"/../lib/python3*/site-packages/nvidia/*/lib | tr ' ' :)
LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/python" "$@"
WRAPPER
  ! "$part/bin/python-torch" -c 'import torch, transformers' >/dev/null 2>&1 || touch "$part/has-transformers"
  cp "$wanted" "$part/requirements.txt"
  rm -rf "$test_python"; mv "$part" "$test_python"
  finish
  tell_what_is_left_out
}

tell_what_is_left_out() {
  [ -e "$test_python/has-transformers" ] || say "its Python cannot import torch and transformers: transformers_test and dcp_test are not registered"
}
