#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Traces of a run of 2 x 2 x 2 ranks: their format, the spans that they have, and that runs without them have the same losses.
# The table of times at the end of such a run.
#   trace_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
job 4 4 <<J
[parallelism]
pipeline_parallel_degree = 2
tensor_parallel_degree = 2
[checkpoint]
enable = true
interval = 2
[profiling]
profile_freq = 4
profiler_active = 3
profiler_warmup = 1
J
# train FOLDER [FLAG...]: prints the exit code
train() {
  timeout 200 "$tessera" launch -n 8 -- train "$work/job.toml" --training.steps 4 --job.dump_folder "$work/$1" "${@:2}" >"$work/$1.log" 2>&1
  echo $?
}
losses() { sed -n 's/.*"loss": *\([^,}]*\).*/\1/p' "$work/$1/metrics.jsonl"; }
check "a run with --profile" "$(train traced --profile)" 0
check "and one without" "$(train plain)" 0
check "have the same losses" "$(losses traced)" "$(losses plain)"
check "a run without has no traces" "$(ls "$work/plain/profile_traces" 2>/dev/null)" ""
# The table at the end has all ranks. Its shares are all of the time, and its notes name keys that the job has not set.
# rows FOLDER: share and name of each row
rows() {
  awk '/^  seconds of 8 ranks/ {inside = 1; next} !/ %$/ {inside = 0}
       inside {share = $(NF - 1); NF -= 6; print share, $0}' "$work/$1.log"
}
# The table leaves out what is below 0.05 % of the time: on a quick machine the optimizer, or the sums of gradients.
check "the table has rows for what takes time" "$(rows plain | grep -cxE '[0-9.]+ (forward|backward|waiting in tp|rest)')" 4
check "and no row that is no part" "$(rows plain | grep -vxE '[0-9.]+ (forward|backward|gradient sums|optimizer|waiting in (world|pp|dp_shard|tp)|data|checkpoint|rest)')" ""
check "and all of the time" "$(rows plain | awk '{sum += $1} END {print (sum > 98.5 && sum < 101.5) ? "all" : sum}')" all
check "waiting in tp has a note with its key" "$(grep -c '^  note: [0-9.]* % of the run was lost waiting in tp; --parallelism.enable_async_tensor_parallel may win it back$' "$work/plain.log")" 1
check "a run with that key" "$(train asynchronous --parallelism.enable_async_tensor_parallel)" 0
check "is not told to set it" "$(grep -c 'note:.*async_tensor_parallel' "$work/asynchronous.log")" 0
folder=$work/traced/profile_traces
check "one trace ends with step 4" "$(ls "$folder")" iteration_4
check "each rank has a file, and all have one" "$(ls "$folder/iteration_4" | wc -l)" 9
python3 "$here/check_trace.py" "$folder/iteration_4/trace.json" 8 >"$work/found"
check "the file of all ranks is right" "$(head -n 1 "$work/found")" ok
check "each axis has a track" "$(sed -n 's/^tracks: //p' "$work/found" | sed 's/, /\n/g' | grep -cxE 'steps|world|pp|pp upstream|dp_shard|tp')" 6
for span in 'step 2' 'step 4' data forward backward communication optimizer checkpoint 'layers.1 forward' 'layers.1 backward' all_gather group; do
  check "the span $span is there" "$(grep -cx "  $span" "$work/found")" 1
done
check "a step that is not traced has none" "$(grep -cx "  step 1" "$work/found")" 0
check "waits show for whom" "$(grep -c "  waiting in [a-z+_]*$" "$work/found" | sed 's/[1-9][0-9]*/some/')" some
exit $((failures > 0))
