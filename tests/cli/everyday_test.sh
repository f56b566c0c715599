#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
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
says "which is said" two "two was owned by a job that ended abnormally (host "
says "the old metrics are kept" two "starting from step 1 with new metrics, because checkpoint.enable is false; the metrics of the last run are kept in $work/two/metrics.1.jsonl"
check "and are whole" "$(head -c 10 "$work/two/metrics.1.jsonl")$(steps two)" '{"step": 11 2 '
check "nobody owns the folder any more" "$(ls "$work/two/.owner" 2>/dev/null)" ""

# The end of a run.
check "a run that saves ends with 0" "$(train 1 done --training.steps 3 --checkpoint.enable)" 0
says "says that it is complete" done "^training is complete (3 of 3 steps)$"
says "with the loss" done "^  loss  *[0-9.]* (first step: [0-9.]*)$"
says "both ways to count utilisation" done "^  mfu  *[0-9.]* % with full attention, as TorchTitan counts; [0-9.]* % with causal attention$"
says "where the time went" done "^  forward  *[0-9.]* .* [0-9.]* %$"
says "also on checkpoints" done "^  checkpoint  *[0-9.]* .* [0-9.]* %$"
says "the picture's path" done "^  loss curve  *$work/done/loss.svg$"
says "and what to do next" done "^  generate text  *tessera generate $work/done --prompt "
check "no line is wider than 100 columns" "$(grep '^step ' "$work/done.log" | grep -c '.\{101\}')" 0
check "its record has absolute paths" "$(cd "$work" && "$tessera" config show done/config.toml | grep -c "^dataset_path = \"/")" 1
check "the same command once more" "$(train 1 done --training.steps 3 --checkpoint.enable)" 0
says "has nothing left to do" done "^training is complete (3 of 3 steps); there is nothing to do: raise training.steps to train longer$"

# Another job in an old folder.
check "another sequence length in an old folder is refused" "$(train 1 done --training.steps 5 --checkpoint.enable --training.seq_len 32)" 2
says "with what differs" done "was trained on other data than this job has, or in another order (training.seq_len is 32, was 64). .*choose another job.dump_folder"
check "as a branch it is, too" "$(train 1 other --training.steps 5 --checkpoint.enable --training.seq_len 32 --checkpoint.initial_load_path "$work/done/checkpoint" --checkpoint.no_initial_load_model_only)" 2
says "with what helps there" other "(training.seq_len is 32, was 64). Restore the data, or start this data from its beginning"
small=(--model.hf_config=none --model.name llama3 --training.steps 1 --checkpoint.enable)
check "a model by its name" "$(train 1 named "${small[@]}" --model.flavor debugmodel)" 0
check "another model in an old folder is refused" "$(train 1 named "${small[@]}" --model.flavor 1B)" 2
says "by its name" named "named/checkpoint holds checkpoints of another model: llama3 debugmodel, and this job trains llama3 1B; choose another job.dump_folder"

# A signal is answered at once; a model that does not fit is refused at once.
timeout 200 "$tessera" launch -n 2 -- train "$work/job.toml" --job.dump_folder "$work/asked" --training.steps 500000 --checkpoint.enable >"$work/asked.log" 2>&1 &
job=$!
until [ "$(made asked)" != "" ] || ! kill -0 $job 2>/dev/null; do sleep 0.05; done
mkdir -p "$work/asked/checkpoint"; ln -s asked/checkpoint "$work/link"
for folder in ../asked/checkpoint/ ../asked/other "$work/link"; do
  timeout 200 "$tessera" train "$work/job.toml" --job.dump_folder "$work/guest" --checkpoint.enable --checkpoint.folder "$folder" >"$work/guest.log" 2>&1
  check "its checkpoints are no other job's: $folder" $? 3
done
timeout 200 "$tessera" train "$work/job.toml" --job.dump_folder "$work/asked/below" --checkpoint.enable --checkpoint.folder .. >"$work/below.log" 2>&1
check "nor in the folder above" $? 3
says "which names the folder" guest "/asked is in use by another job (host .*choose another checkpoint.folder"
kill -TERM $job; wait $job
check "a signal ends the run with 75" $? 75
mkdir "$work/linked" "$work/store"; ln -s ../store "$work/linked/checkpoint"
check "checkpoints may be behind a link" "$(train 1 linked --checkpoint.enable --training.steps 2)" 0
check "from where the run resumes" "$(train 1 linked --checkpoint.enable --training.steps 3)" 0
check "and nobody owns them then" "$(ls -A "$work/store" | grep -c owner)" 0
says "is answered, once" asked "^signal received: saving after this step; a second signal stops now$"
says "and the way on is said" asked "stopped by a signal after step [0-9]*; run the same command to resume$"
check "a model that does not fit is refused" "$(train 2 large --model.hf_config=none --model.name llama3 --model.flavor 405B --training.seq_len 64)" 3
says "with what it needs and what is free, once" large "llama3 405B needs at least [0-9.]* TiB on rank 0 ($(hostname)), where [0-9.]* GiB are free (weights "
huge=(--model.hf_config=none --model.name llama3 --model.flavor 405B)
"$tessera" eval "$work/job.toml" --job.dump_folder "$work/done" --validation.split 0.1 "${huge[@]}" >"$work/eval.log" 2>&1
check "the same in eval" $? 3
says "which needs its weights" eval "llama3 405B needs at least [0-9.]* TiB on rank 0 ($(hostname)), where [0-9.]* GiB are free (weights 1"
"$tessera" generate "$work/done" --prompt-ids 1 --print-ids "${huge[@]}" >"$work/generate.log" 2>&1
check "and in generate" $? 3
says "in one process" generate "llama3 405B needs at least [0-9.]* TiB in one process, where [0-9.]* GiB are free (weights 1"

# A rank that is killed.
check "a killed rank ends the job with 137" "$(train 2 lost --training.steps 9 --checkpoint.enable --checkpoint.interval 2 --debug.inject_faults 6:die:1)" 137
says "and is named, with the way on" lost "rank 1 was ended by signal 9 (killed) after step 5; run the same command to resume (latest checkpoint: step 4)"
check "a killed rank of a job that does not save" "$(train 2 gone --training.steps 9 --debug.inject_faults 3:die:0)" 137
says "has no way on" gone "rank 0 was ended by signal 9 (killed) after step 2; no checkpoint was saved: the same command starts from step 1"

says "mpirun's signals to the others are no wish of the user" lost "signal received" 0

finish
