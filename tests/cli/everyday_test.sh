#!/usr/bin/env bash
# Everyday trouble: two jobs in one folder, a run that starts anew, and what a run says at its end.
#   everyday_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
text_job 2 4 </dev/null

# train RANKS FOLDER [FLAG...]: as run() does.
train() { timeout -k 10 200 "$tessera" launch -n "$1" -- train "$work/job.toml" --job.dump_folder "$work/$2" "${@:3}" >"$work/$2.log" 2>&1; echo $?; }
says() { check "$1" "$(grep -c -- "$3" "$work/$2.log")" "${4:-1}"; }

# One folder, one owner.
timeout 200 "$tessera" train "$work/job.toml" --job.dump_folder "$work/two" --training.steps 5000 >"$work/first.log" 2>&1 &
first=$!
until [ "$(made two)" != "" ] || ! kill -0 $first 2>/dev/null; do sleep 0.05; done
check "a second job in one folder is refused" "$(train 2 two)" 3
says "and the first one is named, once" two "two is in use by another job (host $(hostname), pid [0-9]*, since 20.* UTC); wait for its end"
pkill -KILL -P $first; wait $first
check "a killed owner's folder is taken over" "$(train 1 two --training.steps 2)" 0
says "which is said" two "two belonged to a job that has ended without giving it back (host "
says "the old metrics are kept" two "starting from step 1, because checkpoint.enable is false; the metrics of the last run are kept in $work/two/metrics.1.jsonl"
check "and are whole" "$(head -c 10 "$work/two/metrics.1.jsonl")$(steps two)" '{"step": 11 2 '
check "nobody owns the folder any more" "$(ls "$work/two/.owner" 2>/dev/null)" ""

# The end of a run.
check "a run that saves ends with 0" "$(train 1 done --training.steps 3 --checkpoint.enable)" 0
says "says that it is complete" done "^training is complete (3 of 3 steps)$"
says "with the loss" done "^  loss  *[0-9.]* (first step: [0-9.]*)$"
says "where the time went" done "^  time  *compute [0-9.]*%.* checkpoints [0-9.]*%"
says "the picture's path" done "^  loss curve  *$work/done/loss.svg$"
says "and what to do next" done "^  tessera generate $work/done --prompt "
check "no line is wider than 100 columns" "$(grep '^step ' "$work/done.log" | grep -c '.\{101\}')" 0
check "the same command once more" "$(train 1 done --training.steps 3 --checkpoint.enable)" 0
says "has nothing left to do" done "^training is complete (3 of 3 steps); nothing is left to do: raise training.steps to train on$"

finish
