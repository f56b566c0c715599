#!/usr/bin/env bash
# `tessera ckpt` as scripts use it: what it prints and its exit codes, on the golden checkpoint and on damaged copies.
#   ckpt_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
golden=$here/../golden/checkpoint-1
# ckpt WHAT CODE TEXT ARG...: `tessera ckpt ARG...` ends with CODE and says TEXT somewhere.
ckpt() {
  local what=$1 code=$2 text=$3 out; shift 3
  out=$(timeout 200 "$tessera" ckpt "$@" 2>&1); check "$what: exit code" $? "$code"
  case $out in *"$text"*) ;; *) echo "WRONG $what: no '$text' in: $out"; failures=$((failures + 1)) ;; esac
}
# flip FILE OFFSET: another byte there.
flip() { local byte; byte=$(od -An -tu1 -j"$2" -N1 "$1"); printf "\\x$(printf %x $(((byte + 1) % 256)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
entries() { find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' '; }

ckpt "list" 0 "step-00000042" list "$golden"
ckpt "show" 0 "boxes    " show "$golden"
ckpt "verify" 0 "whole, every byte" verify --deep "$golden"
ckpt "no checkpoint" 5 "no checkpoint in" list "$work"
ckpt "no such verb" 2 "help" polish "$golden"

ckpt "reshard" 0 "13 tensors in 2 files" reshard "$golden" "$work/two" --ranks 2
ckpt "verify what was resharded" 0 "whole, every byte" verify "$work/two"
ckpt "diff of equal ones" 0 "equal, each bit of 13 tensors" diff "$golden" "$work/two/step-00000042"
ckpt "reshard onto itself" 2 "exists" reshard "$golden" "$work/two" --ranks 3
ckpt "reshard to nothing" 2 "at least one file" reshard "$golden" "$work/none" --ranks 0

cp -r "$golden" "$work/bad" && mv "$work/bad/step-00000042" "$work/bad/step-00000043"
ckpt "another step's folder" 5 "it is of step 42" verify "$work/bad"
ckpt "diff with a damaged one" 5 "skipping checkpoint step-00000043" diff "$golden" "$work/bad"
rm -rf "$work/bad"; cp -r "$golden" "$work/bad"
flip "$work/bad/step-00000042/shard-0of3.h5" 28096  # the first byte of model/layers.2.weight there
ckpt "a flipped byte" 5 "the checksum of block 0 of model/layers.2.weight does not match" verify "$work/bad"
ckpt "is not seen quickly" 0 "complete" verify --quick "$work/bad"
ckpt "and stops a diff" 5 "the checksum of block 0 of model/layers.2.weight" diff "$golden" "$work/bad"
echo step-00000001 >"$work/two/LATEST"
ckpt "a wrong hint" 0 "does not name the newest checkpoint, step-00000042" verify "$work/two"

mkdir "$work"/two/step-0000004{0,1}{,.damaged-x} "$work/two/step-00000050" "$work/two/step-00000051.partial-x"
before=$(entries "$work/two")
ckpt "prune, dry" 0 "would remove $work/two/step-00000041 (" prune "$work/two" --keep-latest 1 --damaged --dry-run
check "a dry run removes nothing" "$(entries "$work/two")" "$before"
ckpt "prune, no flag" 0 "0 removed" prune "$work/two" --keep-latest 1
check "without flags damaged ones stay" "$(entries "$work/two")" "$before"
ckpt "prune" 0 "4 removed" prune "$work/two" --keep-latest 1 --damaged --partial
check "the newest whole one and newer ones stay" "$(entries "$work/two")" "LATEST step-00000042 step-00000050 step-00000051.partial-x "
ckpt "prune all" 2 "at least the newest" prune "$work/two" --keep-latest 0
ckpt "prune without a number" 2 "keep-latest" prune "$work/two"
ckpt "show passes over a damaged one" 0 "step     42" show "$work/two"
[ "$failures" = 0 ]
