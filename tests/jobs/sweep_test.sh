#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Inside with_slurm.sh: a sweep as a job array, with points that are killed and one that fails by itself.
#   sweep_test.sh TESSERA SOURCE_DIR POINTS AT_ONCE KILLED...
# Point 1 fails by itself. The points KILLED take longer, and lose their rank. With SWEEP_REQUEUE=1 the last point is stopped, and
# comes back by itself.
set -euo pipefail
tessera=$(realpath "$1") source=$2 points=$3 at_once=$4; shift 4
killed=("$@")
export OMP_NUM_THREADS=1
fail() { printf 'sweep_test: %s\n' "$*" >&2; tail -n 20 lr/point-*/output.log lr/submissions/*/*.out >&2; exit 1; }
cd "$SLURM_TEST_DIR"
mkdir work; cd work
"$source/tests/jobs/tiny_assets.sh" "$tessera" assets
sed -e '/parallel_degree/d' "$source/tests/jobs/tiny.toml" >base.toml

long=80
{
  printf 'job = "base.toml"\nfolder = "lr"\ntime = "00:30:00"\nat_once = %s\n' "$at_once"
  printf '[set]\ncheckpoint.enable = true\ncheckpoint.interval = 1000\n'
  for ((i = 1; i <= points; i++)); do
    steps=4
    case " ${killed[*]} " in *" $i "*) steps=$long ;; esac
    [ "${SWEEP_REQUEUE:-0}$i" != "1$points" ] || steps=$long
    printf '[[list]]\noptimizer.lr = %se-4\ntraining.steps = %s\n' "$i" "$steps"
    [ "$i" != 1 ] || printf 'training.dataset_path = "gone/tokens"\n'
  done
} >lr.toml

state() { "$tessera" sweep status lr | awk -v point="$1" '$1 == point { print $2, $3; exit }'; }
summary() { "$tessera" sweep status lr | tail -n 1 || true; }
made() { [ ! -e "$(folder "$1")/metrics.jsonl" ] && echo 0 || wc -l <"$(folder "$1")/metrics.jsonl"; }
folder() { printf 'lr/point-%04d' "$1"; }
reach() { # POINT STEPS: waits until the point has made them
  for _ in {1..9000}; do [ "$(made "$1")" -lt "$2" ] || return 0; sleep 0.02; done
  fail "point $1 did not reach step $2"
}
all_left() { # waits until no task is left
  for _ in {1..3000}; do [ -n "$(squeue -h)" ] || return 0; sleep 0.1; done
  fail "tasks are left: $(squeue)"
}

"$tessera" sweep submit lr.toml >submit.out || fail "$(cat submit.out)"
grep -q "$points points" submit.out || fail "the grid was not printed: $(cat submit.out)"
for point in "${killed[@]}"; do
  reach "$point" 1
  rank=$(pgrep -f "^$tessera train .*$PWD/$(folder "$point")$" | head -n 1) || fail "point $point has no rank"
  kill -KILL "$rank"
done
if [ "${SWEEP_REQUEUE:-0}" = 1 ]; then
  reach "$points" 1
  scancel --signal=USR1 "$(sed 's/.*"job":"\([0-9]*\)".*/\1/' lr/submissions/1/submission.json)_$points"
fi
all_left
failures=$((${#killed[@]} + 1))
[ "$(summary)" = "$points points: $((points - failures)) done, $failures failed" ] || fail "status: $(summary)"
[ "$(state 1)" = "failed 4" ] || fail "point 1 is $(state 1)"
grep -A 1 '^1 ' < <("$tessera" sweep status lr) | grep -q gone/tokens || fail "the reason of point 1 is not told"
for point in "${killed[@]}"; do [ "$(state "$point")" = "failed 137" ] || fail "point $point is $(state "$point")"; done
[ "$(PATH=/usr/bin:/bin SLURM_CONF=/nowhere summary)" = "$(summary)" ] || fail "without Slurm: $(SLURM_CONF=/nowhere summary)"
if [ "${SWEEP_REQUEUE:-0}" = 1 ]; then
  grep -q '^end .* 75$' "$(folder "$points")/attempts.log" || fail "the last point was not stopped"
fi

"$tessera" sweep collect lr >collect.out || fail "$(cat collect.out)"
[ "$(wc -l <lr/results.csv)" = $((points + 1)) ] || fail "results.csv: $(cat lr/results.csv)"
[ "$(grep -c '^[0-9]*,done,0,' lr/results.csv)" = $((points - failures)) ] || fail "results.csv: $(cat lr/results.csv)"
# Those that are done come first: one that was killed may have a lower loss.
awk -F, 'NR > 1 { is_done = $2 == "done"; if (is_done && (others || $7 + 0 < last + 0)) bad = 1; others = !is_done; last = $7 }
  END { exit bad }' lr/results.csv || fail "not sorted: $(cat lr/results.csv)"

mkdir gone; for file in assets/tokens*; do ln -s "../$file" "gone/${file#assets/}"; done
"$tessera" sweep rerun-failed lr >again.out || fail "$(cat again.out)"
grep -q "$failures tasks\|for $failures points" again.out || fail "$(cat again.out)"
all_left
[ "$(summary)" = "$points points: $points done" ] || fail "after rerun-failed: $(summary)"
[ "$("$tessera" sweep submit lr.toml | tail -n 1)" = "nothing is left to start" ] || fail "done points were submitted again"
echo "a sweep of $points points, $failures of them failed and run again"
