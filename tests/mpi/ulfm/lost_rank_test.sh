#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A rank that is killed is named soon, and the job ends with 7, under an MPI with fault tolerance.
#   lost_rank_test.sh PREFIX_OF_OPEN_MPI_5 LOST_RANK
set -uo pipefail
prefix=$1 program=$2 failures=0
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
[ "$(id -u)" != 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export PMIX_MCA_gds=hash OPAL_PREFIX=$prefix PMIX_PREFIX=$prefix PRTE_PREFIX=$prefix
check() { if [ "$2" = "$3" ]; then echo "ok    $1"; else echo "WRONG $1: got '$2', want '$3'"; failures=$((failures + 1)); fi; }
for how in "reduce mpi" "ring mpi" "reduce strict" "ring strict"; do
  # shellcheck disable=SC2086
  timeout -k 5 150 "$prefix/bin/mpirun" --with-ft ulfm --map-by :OVERSUBSCRIBE --bind-to none -n 4 "$program" $how >"$work/log" 2>&1
  check "$how: the job ends with 7" $? 7
  check "$how: the rank is named within a minute" "$(awk 'sub(/.*rank [012] after /, "") && / s: rank 3 died, which rank/ { named++; late += $1 >= 60 }
    END { print named + 0 ? "named" : "not named", late + 0 }' "$work/log")" "named 0"
  [ $failures = 0 ] || { cat "$work/log"; break; }
done
exit $failures
