#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs of 200 steps under random faults, for as long as it is told to: kills in saves, file calls that fail, collective calls that go
# wrong, gradients that are not numbers, flipped bits of weights, signals, the end of the allocation, and damage to what was saved.
# Whatever it was, the same command goes on, and each run ends with the bits of one that nobody disturbed.
#   soak_test.sh TESSERA FAULT_SHIM SECONDS SEED
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
shim=$(realpath "$2") seconds=$3 RANDOM=$4 last=200
text_job 2 4 <<J
[parallelism]
pipeline_parallel_degree = 2
data_parallel_replicate_degree = 2
data_parallel_shard_degree = 1
[optimizer]
on_nonfinite = "stop"
[checkpoint]
enable = true
keep_latest_k = 3
[comm]
train_timeout_seconds = 20
save_timeout_seconds = 20
[debug]
deterministic = true
check_collectives = true
check_replicas = 1
J
export TESSERA_STRICT_TIMEOUT_SECONDS=3
saved() { find "$work/$1/checkpoint" -maxdepth 1 -regex '.*/step-[0-9]*' 2>/dev/null | sort; }
random() { echo $(($1 + RANDOM % ($2 - $1 + 1))); }

# Something happens to a file of the latest checkpoint: the one before is taken then.
damage() {
  local files size
  mapfile -t files < <(find "$(saved "$1" | tail -n 1)" -type f | sort)
  local file=${files[RANDOM % ${#files[@]}]}
  size=$(stat -c %s "$file")
  case $((RANDOM % 3)) in
    0) printf '\x5a' | dd of="$file" bs=1 seek=$((RANDOM * RANDOM % size)) conv=notrunc status=none ;;
    1) truncate -s $((size / 2)) "$file" ;;
    2) rm "$file" ;;
  esac
  what="damage to ${file##*/}"
}

# Starts run NAME with a fault, or starts it and disturbs it, for 25 steps at most; sets `what` and `code`.
disturb() {
  local name=$1 from end step flags TESSERA_FAULT=
  from=$(made "$name") end=$((${from:-0} + 25)) step=$((${from:-0} + $(random 1 12)))
  flags=(--training.steps $((end < last ? end : last)) --lr_scheduler.total_steps $last --checkpoint.interval "$(random 2 7)")
  [ $((RANDOM % 2)) = 0 ] || flags+=(--checkpoint.async_mode async)
  case $((RANDOM % 12)) in
    0 | 1) what="kind=stop nth=$(random 1 110) ranks=$(random 0 3)" ;;
    2) what="kind=stop nth=$(random 1 110)" ;;
    3 | 4) errors=(5 28 30 4); what="error=${errors[RANDOM % 4]} nth=$(random 1 110) ranks=$(random 0 3)" ;;
    5) what="kind=short_write nth=$(random 1 110) ranks=$(random 0 3)" ;;
    6) kinds=(skip shape order freeze die); what=$step:${kinds[RANDOM % 5]}:$(random 0 3):$(random 1 12) ;;
    7) what=$step:nan:$(random 0 3) ;;
    8) what=$step:flip:$(random 0 3) ;;
    9) what=$step:die:$(random 0 3) ;;
    10) what="the end of the allocation" ;;
    11) what=TERM ;;
  esac
  case $what in
    TERM) run_until_term "$name" "${flags[@]}"; code=$? ;;
    the*) code=$(TESSERA_JOB_END=$(($(date +%s) + 3)) run "$name" "${flags[@]}") ;;
    *:*) code=$(run "$name" "${flags[@]}" --debug.inject_faults "$what") ;;
    *) code=$(LD_PRELOAD=$shim TESSERA_FAULT="$what folder=$work/$name/checkpoint" run "$name" "${flags[@]}") ;;
  esac
}

check "an undisturbed run" "$(run whole --training.steps $last --lr_scheduler.total_steps $last)" 0
reference=$(weights whole $last)
declare -A seen=() ended=()
faults=0 runs=0
while [ $SECONDS -lt "$seconds" ]; do
  name=run$((++runs))
  while [ $failures = 0 ] && [ $SECONDS -lt "$seconds" ] && [ "$(made "$name")" != $last ]; do
    disturb "$name"
    [ "$code" != 0 ] || continue
    faults=$((faults + 1)) kind=${what%% *}; kind=${kind//[0-9]/}; seen[$kind]=$((${seen[$kind]:-0} + 1)) ended[$code]=$((${ended[$code]:-0} + 1))
    case $code in 3 | 5 | 6 | 7 | 75 | 137) ;; *) check "$name: $what" "$code" "3, 5, 6, 7, 75 or 137" ;; esac
    if [ $((RANDOM % 4)) = 0 ] && [ "$(saved "$name" | wc -l)" -gt 1 ]; then
      damage "$name"; faults=$((faults + 1)) seen[damage]=$((${seen[damage]:-0} + 1))
    fi
  done
  check "$name ends, after $faults faults" "$(run "$name" --training.steps $last --lr_scheduler.total_steps $last)" 0
  check "with the bits of the undisturbed run" "$(weights "$name" $last)" "$reference"
  check "every step once in metrics.jsonl" "$(steps "$name")" "$(seq -s ' ' 1 $last) "
  check "no process is left" "$(pgrep -fc -- "--job.dump_folder $work/")" 0
  [ $failures = 0 ] || break
  rm -rf "${work:?}/$name" "$work/$name.hf" "$work/$name.log"
done
echo "$faults faults in $runs runs:$(for kind in "${!seen[@]}"; do printf ' %s %s,' "$kind" "${seen[$kind]}"; done) exit codes:$(for code in "${!ended[@]}"; do printf ' %s x %s,' "$code" "${ended[$code]}"; done)"
finish
