#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that sleeps in every step is named at the end of the run, and no other rank is.
#   late_rank_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
job 2 2 <<J
J
# train FOLDER [FLAG...]: prints the exit code
train() {
  timeout 200 "$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/$1" --training.steps 12 "${@:2}" >"$work/$1.log" 2>&1
  echo $?
}
late='note: rank [0-9]* arrives'
# Four ranks on two cores: another program may hold back some of them in most of twelve steps, and then those are late.
for attempt in 1 2 3; do
  rm -rf "$work/slept"
  check "a run with a rank that sleeps" "$(train slept --debug.inject_faults 2:slow:2)" 0
  named=$(grep -c 'note: rank 2 arrives [34][0-9]\(\.[0-9]\)\? ms late in [0-9]* % of steps$' "$work/slept.log")
  [ "$named" = 0 ] || [ "$(grep -c "$late" "$work/slept.log")" -gt 1 ] || break
done
check "names it" "$named" 1
check "and no other" "$(grep -c "$late" "$work/slept.log")" 1
tensor=(--parallelism.tensor_parallel_degree 2 --parallelism.pipeline_parallel_degree 2)
check "with pipeline and tensor parallelism" "$(train tensor "${tensor[@]}" --debug.inject_faults 2:slow:1)" 0
check "names the one" "$(grep -o "$late" "$work/tensor.log")" "note: rank 1 arrives"
for attempt in 1 2 3; do
  plain=plain$attempt
  check "a run without" "$(train $plain)" 0
  grep -q "$late" "$work/$plain.log" || break
done
check "names nobody" "$(grep "$late" "$work/$plain.log")" ""
[ $failures = 0 ] || tail -n 25 "$work"/*.log
exit $((failures > 0))
