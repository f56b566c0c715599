#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The functions of cmake/bootstrap on commands of no importance: phases_test.sh SOURCE_FOLDER
set -euo pipefail
root=$1 verb=test log=$(mktemp -d) failures=0
trap 'rm -rf "$log"' EXIT

expect() { # WHAT PATTERN TEXT
  if [[ $3 != *"$2"* ]]; then printf 'FAILED: %s: no "%s" in:\n%s\n' "$1" "$2" "$3"; failures=$((failures + 1)); fi
}

inside() { # COMMANDS: run in a shell that has sourced the phases; prints both outputs and the exit code
  local rc=0
  root=$root verb=$verb log=$log timeout -k 5 60 bash -euo pipefail -c ". '$root/cmake/bootstrap/phases.sh'; tick=1; $1" 2>&1 || rc=$?
  echo "exit code $rc"
}

refused() { # PATTERN ARGUMENT...; with a cache that ends what is not refused
  expect "bootstrap ${*:2}" "$1"$'\n'"exit code 2" "$(TESSERA_CACHE=/proc/none "$root/bootstrap" "${@:2}" 2>&1 || echo "exit code $?")"
}
refused "--text belongs to 'run'" deps --text "$0"
refused "--prefix belongs to 'build'" run --prefix x
refused '--compile-only belongs to --cuda' test --compile-only
refused "'deps' compiles nothing; leave --jobs out" deps --jobs 2
expect 'the plan adds up' "'test' takes about 1 min 10 s and 30 MB" "$(inside 'plan one 60 10; plan two 10 20; plan nothing 0 99; show_plan /')"
expect 'the plan has no idle phase' '  2. two' "$(inside 'plan one 60 10; plan nothing 0 99; plan two 10 20; show_plan /')"
expect 'too little disk is refused' 'exit code 3' "$(inside 'plan one 60 99999999; show_plan /')"
expect 'a bar' '[############            ] 5 of 10 files, 2.5/s, 2 s left' "$(inside 'progress 5 10 files 2')"
expect 'no total' '7 lines, 1 min 05 s' "$(inside 'progress 7 0 lines 65')"
expect 'ninja is counted' '12 194 files' "$(printf '[11/194] a\n[12/194] b\nwarning\n' >"$log/n"; inside "count_ninja '$log/n'")"
expect 'a line each tick' '1 lines, ' "$(inside 'shown slow count_lines bash -c "echo here; sleep 3"')"
expect 'a failure shows the log' 'the reason' "$(inside 'shown bad count_lines bash -c "echo the reason; exit 7" || echo returned')"
expect 'a failure returns' 'returned' "$(inside 'shown bad count_lines false || echo returned')"
expect 'seconds are kept' $'\ttest\tsleeping\t' "$(inside 'begin sleeping; finish'; cat "$log/phases.tsv")"
expect 'phases have a line each' $'took 1 min 03 s:\n    1 min 01 s  one\n           2 s  two' "$(inside 'phase_names=(one two) phase_seconds=(61 2); show_phases')"
expect 'output passes' 'half whole' "$(inside '{ printf "half "; sleep 2; printf "whole\nlast"; } | ticking test')"
expect 'silence is broken' 'test: 1 s since the last line' "$(inside '{ echo first; sleep 3; } | ticking test')"
# A slow machine may say so at other lines.
lines='for i in 1 2 3 4 5; do echo " $i/8 Test #7: a ... Passed"; sleep 1.2; done'
expect 'tests that are done are counted' ' of 8 tests, ' "$(inside "tick=2; { $lines; } | ticking test")"
expect 'also in a silence' '2 s since the last line; [###############         ] 5 of 8 fuzz targets, ' \
  "$(inside "tick=2; { echo ' 5/8 Test #7: a ... Passed'; sleep 4; } | ticking 'fuzz target'")"
expect 'tests that nobody registered are named' 'transformers_test and dcp_test are not registered' \
  "$(inside "cache=$log; . '$root/cmake/bootstrap/install.sh'; tell_what_is_left_out")"
expect 'the exit code passes' 'exit code 8' "$(inside '(exit 8) | ticking test')"

# A signal ends the child and all that it started.
inside "begin waiting; shown long count_nothing bash -c 'sleep 54321 & wait'" >"$log/interrupted" &
for _ in {1..100}; do ! pgrep -f 'sleep 5432[1]' >/dev/null || break; sleep 0.1; done
pkill -TERM -f 'begin waitin[g]' || true
wait
expect 'an interruption says what to do' 'interrupted in: waiting; run the same command' "$(cat "$log/interrupted")"
expect 'its children are ended' none "$(sleep 0.5; pgrep -f 'sleep 5432[1]' || echo none)"

[ $failures = 0 ] || { echo "$failures failed"; exit 1; }
echo 'all passed'
