#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How ranks end that fail together, or alone: one code and one message.
#   ranks_test.sh MPIRUN_SH RANKS_PROBE
set -uo pipefail
failures=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:allocator_may_return_null=1
check() { if [ "$2" = "$3" ]; then echo "ok    $1"; else echo "WRONG $1: got '$2', want '$3'"; echo "$said"; failures=$((failures + 1)); fi; }
# run HOW: sets code and said.
run() { said=$("$1" 120 3 "$2" "$3" 2>&1); code=$?; }
returns() { grep -c "^returns $1$" <<<"$said"; }
says() { grep -c "$1" <<<"$said"; }

run "$1" "$2" well; check "a command that does well" "$code $(returns 0)" "0 3"
run "$1" "$2" together; check "all fail: one code" "$code $(returns 4)" "4 3"
check "and one message" "$(says '^tessera: the data is bad$') $(says tessera:)" "1 1"
run "$1" "$2" mixed; check "one fails, and the others because of it: the cause's code" "$code $(returns 4)" "4 3"
check "and its message" "$(says '^tessera: rank 1 on .*: the data is bad$') $(says tessera:)" "1 2"
run "$1" "$2" alone; check "one fails alone: the job ends with its code" "$code $(returns 4)" "4 0"
check "and its message" "$(says '^tessera: rank 1 on .*: the data is bad$') $(says tessera:)" "1 1"
run "$1" "$2" memory; check "memory is used up: 3" "$code $(returns 3)" "3 3"
check "which is said" "$(says "^tessera: .*allocate.*; use a smaller batch, more ranks or recompute$") $(says tessera:)" "1 1"
run "$1" "$2" memory_alone; check "on one rank" "$code $(says "^tessera: rank 1 on .*allocate.*; use a smaller batch")" "3 1"
exit $failures
