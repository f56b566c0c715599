#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh PROGRAM SEEDS SECONDS [LIBFUZZER_OPTION...]: fuzzes one target. Inputs that reach something new add up over runs, in $TESSERA_FUZZ_CORPUS or beside
# the build; inputs.tsv there has a line for each run (tests/fuzz/inputs.sh sums them), findings/ the inputs that ended the target.
set -euo pipefail
program=$1 seeds=$2 seconds=$3
shift 3
name=$(basename "$program" _fuzz)
root=${TESSERA_FUZZ_CORPUS:-$(dirname "$seeds")/../fuzz-corpus}
mkdir -p "$root/$name" "$root/findings"
log=$root/$name.log

# A recoverable error of the undefined-behaviour sanitizer ends the target, too.
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1} UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1:halt_on_error=1}
code=0
"$program" "$root/$name" "$seeds" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=2048 -malloc_limit_mb=1024 -max_len=8192 \
  -artifact_prefix="$root/findings/$name-" -print_final_stats=1 "$@" >"$log" 2>&1 || code=$?
[ $code != 72 ] || code=0  # interrupted
inputs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
printf '%s\t%s\t%s\t%s\n' "$(date -u +%FT%TZ)" "$name" "${inputs:-0}" "$code" >>"$root/inputs.tsv"
if [ $code != 0 ]; then
  tail -n 60 "$log"
  printf '%s ended with code %s; the input is in %s\n' "$name" $code "$root/findings" >&2
  exit 1
fi
printf '%s: %s inputs\n' "$name" "$inputs"
