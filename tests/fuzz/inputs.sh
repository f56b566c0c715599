#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# inputs.sh [CORPUS]: how many inputs each fuzz target has been given over all runs, and how many runs ended with a finding.
set -euo pipefail
root=${1:-${TESSERA_FUZZ_CORPUS:-build-fuzz/fuzz-corpus}}
[ -r "$root/inputs.tsv" ] || { printf 'inputs.sh: no runs in %s; name the corpus folder\n' "$root" >&2; exit 2; }
awk -F'\t' '{ inputs[$2] += $3; runs[$2]++; ended[$2] += $4 != 0 }
  END { for (t in inputs) printf "%-12s %12d inputs in %4d runs, %d ended with a finding\n", t, inputs[t], runs[t], ended[t] }' "$root/inputs.tsv" | sort
