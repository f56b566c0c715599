#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The first hour with a GPU: proves and measures the CUDA and NCCL path on one H100 or H200, in parts of at most 9 minutes.
# What has passed is not run again; call it until nothing is left. gpu-results.md is written from what was measured.
set -uo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")") root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
usage() {
  cat <<'TEXT'
first_hour.sh [--part LETTER]... [--only REGEX] [--together] [--seconds N] [--out DIR] [--device cuda|sim] [--programs DIR]... [--again]

  --part LETTER     a kernels, b NCCL, c gradients, d a run's life, e speed, f bandwidth, g graphs (default: all)
  --only REGEX      of these parts, the measurements of catalogue.tsv whose names match
  --together        runs what measures no speed at the same time, for a machine with many cores
  --seconds N       the longest time of a part (default: 540)
  --out DIR         logs and results.jsonl, one line for each measurement (default: ./first-hour)
  --device sim      tries the script on the simulated GPU, with tiny sizes; speeds mean nothing
  --programs DIR    where the programs are (default: .device/bin, which pack.sh packs, or build-cuda)
  --again           also runs what has passed
TEXT
}

parts='' only='' together='' part_seconds=540 out=first-hour device=cuda again='' programs=()
while [ $# -gt 0 ]; do
  case $1 in
    --part | --only | --seconds | --out | --device | --programs) [ -n "${2-}" ] || { echo "$1 needs a value" >&2; exit 2; } ;;&
    --part) [[ $2 =~ ^[a-g]$ ]] || { echo "a part is one of a to g, not '$2'" >&2; exit 2; }; parts+=" $2"; shift ;;
    --only) only=$2; shift ;;
    --together) together=1 ;;
    --seconds) [[ $2 =~ ^[1-9][0-9]{1,3}$ ]] || { echo "--seconds needs 10 to 9999, not '$2'" >&2; exit 2; }; part_seconds=$2; shift ;;
    --out) out=$2; shift ;;
    --device) device=$2; shift ;;
    --programs) programs+=("$(realpath "$2")"); shift ;;
    --again) again=1 ;;
    -h | --help) usage; exit 0 ;;
    *) echo "unknown argument '$1'" >&2; usage >&2; exit 2 ;;
  esac
  shift
done
[[ $device =~ ^(cuda|sim)$ ]] || { echo "--device is cuda or sim, not '$device'" >&2; exit 2; }
if [ $device = cuda ] && [ ! -e "$root/.device" ] && [ -e "$root/.device-packed" ]; then
  tar -C "$root" -xJf "$root/.device-packed/device.tar.xz" || exit 3
fi
if [ $device = cuda ] && [ -e "$root/.device/env.sh" ]; then . "$root/.device/env.sh" || exit 3; programs+=("$root/.device/bin"); fi
[ ${#programs[@]} -gt 0 ] || programs=("$root/build-cuda/bin" "$root/build-cuda/tests")
mkdir -p "$out" && out=$(realpath "$out") || exit 2

export TESSERA_TEST_DEVICE=$device TESSERA_TEST_DATA=$root/tests/golden
. "$here/measure.sh"
. "$here/parts.sh"
facts
began=$SECONDS
for part in ${parts:-a b c d e f g}; do
  [[ $part =~ [a-d] ]] || wait  # speeds are measured alone
  [ -n "$together" ] && [[ $part =~ [a-d] ]] || began=$SECONDS
  "part_$part"
done
wait
pages=(--document "$out/gpu-results.md")
[ $device = sim ] || pages=(--document "$root/share/doc/tessera/gpu-results.md" --keep "$here/results")
python3 "$here/render.py" "${pages[@]}" "$out/results.jsonl"
python3 "$here/record.py" count "$out/results.jsonl" ${parts:-a b c d e f g}
