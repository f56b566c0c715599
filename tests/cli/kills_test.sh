#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# kill -9 of one, several or all ranks at random points of saves, again and again, until runs of 20 steps come to their ends: what
# was committed stays, what is half written is not taken for a checkpoint, and the weights are those of a run that nobody killed.
#   kills_test.sh TESSERA FAULT_SHIM KILLS SEED
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
shim=$(realpath "$2") kills=$3 RANDOM=$4
job 2 4 <<J
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 2
[checkpoint]
enable = true
interval = 1
keep_latest_k = 2
[debug]
deterministic = true
J
last=20
newest() { find "$work/$1/checkpoint" -maxdepth 1 -name 'step-*' -regex '.*step-[0-9]*' -printf '%f\n' 2>/dev/null | sort | tail -n 1; }

check "an undisturbed run" "$(run whole --training.steps $last)" 0
reference=$(weights whole $last)
who=(0 1 2 3 0,2 1,3 0,1,2,3 0 3 1,2)
killed=0 lives=0
while [ $killed -lt "$kills" ]; do
  name=life$((++lives)) code=137
  while [ "$code" = 137 ]; do
    before=$(newest $name) mode=$([ $((RANDOM % 2)) = 0 ] && echo async || echo disabled)
    fault="ranks=${who[RANDOM % ${#who[@]}]} nth=$((1 + RANDOM % 110)) kind=stop folder=$work/$name/checkpoint"
    [ $killed -lt "$kills" ] || fault=
    code=$(LD_PRELOAD=$shim TESSERA_FAULT=$fault run $name --training.steps $((last - 1)) --lr_scheduler.total_steps $last --checkpoint.async_mode "$mode")
    [ "$code" = 0 ] || killed=$((killed + 1))
    [ "$code" = 0 ] || [ "$code" = 137 ] || check "$name: $fault ($mode)" "$code" 137
    [[ "$(newest $name)" < "$before" ]] && check "$name: $fault ($mode): a committed checkpoint is lost" "$(newest $name)" "$before"
    damaged=$([ -z "$(newest $name)" ] || "$tessera" ckpt verify --deep "$work/$name" 2>&1 | grep -c damaged)
    [ "${damaged:-0}" = 0 ] || check "$name: $fault ($mode): damaged checkpoints" "$damaged" 0
  done
  check "$name goes on undisturbed" "$(run $name --training.steps $last)" 0  # its save tidies up behind the killed ones
  check "$name, after $killed kills: the bits of the undisturbed run" "$(weights $name $last)" "$reference"
  check "every step once in metrics.jsonl" "$(steps $name)" "$(seq -s ' ' 1 $last) "
  check "nothing half written is left" "$(find "$work/$name/checkpoint" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' ')" \
    "LATEST step-00000019 step-00000020 "
  rm -rf "${work:?}/$name" "$work/$name.hf"
done
echo "$killed kills in $lives runs"
finish
