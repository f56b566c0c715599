#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hang is told in one line within a minute of the last progress, long before the timeout ends the job.
#   notice_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
text_job 4 2 <<J
[comm]
init_timeout_seconds = 300
J
line='rank 2 [(]node .*[)] has not entered [a-z_]+ [0-9]+ of .*; last seen at step 3, '
run hang --parallelism.pipeline_parallel_degree 2 --parallelism.tensor_parallel_degree 2 --debug.inject_faults 3:freeze:2:5 >"$work/code" &
job=$!
until grep -qE "$line" "$work/hang.log" 2>/dev/null || ! kill -0 $job 2>/dev/null; do sleep 0.2; done
seconds=$(since_last_step hang)
check "the line is there" "$(grep -cE "$line" "$work/hang.log" | sed 's/^[1-9].*/some/')" some
check "within 60 s of the last step's end ($seconds s)" $((seconds <= 60)) 1
check "before the timeout, as a line by itself" "$(grep -cE "hangs in" "$work/hang.log")" 0
wait $job
check "the timeout ends the job" "$(cat "$work/code")" 7

# All processes are stopped for longer than the timeout, as a batch system suspends a job.
run suspended --training.steps 400 --comm.train_timeout_seconds 8 >"$work/code" &
job=$!
until [ "$(made suspended)" ] && [ "$(made suspended)" -gt 2 ] || ! kill -0 $job 2>/dev/null; do sleep 0.2; done
mapfile -t ranks_of_it < <(for pid in $(pgrep -f -- "--job.dump_folder $work/suspended"); do
  ! grep -q tensors "/proc/$pid/comm" || echo "$pid"
done)
kill -STOP "${ranks_of_it[@]}"
sleep 15
kill -CONT "${ranks_of_it[@]}"
wait $job
check "four suspended ranks resume" "${#ranks_of_it[@]} $(cat "$work/code")" "4 0"
check "and blame nobody" "$(grep -cE '^(error|tessera):|has not entered|is stopped' "$work/suspended.log")" 0
finish
