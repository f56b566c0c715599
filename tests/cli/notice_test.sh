#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A hang is told in one line within a minute of the last progress, long before the timeout ends the job.
#   notice_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
job 4 2 <<J
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
finish
