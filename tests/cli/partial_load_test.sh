#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs that take a part of a checkpoint, or another program's weights: what they say, where they stand, exit codes.
#   partial_load_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
ranks=2
says() { if grep -qF -- "$3" "$work/$2.log"; then echo "ok    $1"; else echo "WRONG $1: '$3' is not said"; failures=$((failures + 1)); fi; }
loss() { sed -n "s/^{\"step\": *$2,.*\"loss\": *\([0-9.e+-]*\).*/\1/p" "$work/$1/metrics.jsonl"; }
saving=(--checkpoint.enable --checkpoint.interval 4)
exclude=--checkpoint.exclude_from_loading
job 2 2 </dev/null
check "a run" "$(run base "${saving[@]}")" 0
base=$work/base/checkpoint/step-00000008

# Fine-tuning: another run's weights with a new head, and then its own checkpoint, head and all.
tune=(--checkpoint.initial_load_path "$base" "$exclude" '^output' "${saving[@]}")
check "a start from it" "$(run tuned "${tune[@]}")" 0
check "the first loss is the initial one's" "$(awk -v a="$(loss tuned 1)" -v b="$(loss base 1)" 'BEGIN { print (a > b - 0.2 && a < b + 0.5) }')" 1
rm -rf "$work/tuned/checkpoint/step-00000008" && mv "$work/tuned/metrics.jsonl" "$work/whole.jsonl"
check "it goes on with all that it has trained" "$(run tuned "${tune[@]}")" 0
says "from its own checkpoint" tuned "resumed after step 4"
check "as if never stopped" "$(loss tuned 8)" "$(sed -n 's/^{"step": *8,.*"loss": *\([0-9.e+-]*\).*/\1/p' "$work/whole.jsonl")"
writes() { "$tessera" generate "$work/tuned" "$@" --prompt-ids 1,2,3 --max-new-tokens 4 --print-ids >"$work/writes.log" 2>&1; echo $?; }
mv "$base" "$work/away"
check "a tuned run writes with what it has trained" "$(writes)" 0
check "or with other weights if they are named" "$(writes --checkpoint.initial_load_path "$base")" 5
says "which must be there" writes "$base"
mv "$work/away" "$base"

# Parts of the run's own checkpoint.
cp -r "$work/base" "$work/again" && rm -rf "$work/again/checkpoint/step-00000008"
check "without moments and data" "$(run again "${saving[@]}" "$exclude" optimizer,dataloader)" 0
says "is said" again "resumed after step 4 from $work/again/checkpoint, without optimizer, dataloader"
check "the same command again" "$(run again "${saving[@]}" "$exclude" optimizer,dataloader --training.steps 9)" 0
check "goes on with all of its own checkpoint" "$(grep -o 'resumed after step 8 .*' "$work/again.log")" "resumed after step 8 from $work/again/checkpoint"
check "a misspelt part" "$(run again "${saving[@]}" "$exclude" optimiser)" 2
says "is named" again "checkpoint.exclude_from_loading: \"optimiser\" matches nothing"
check "the step itself" "$(run again "${saving[@]}" "$exclude" train_state)" 2
says "is not forgotten" again "would overwrite its own checkpoints"

# From a step that is not the newest.
cp -r "$work/base" "$work/branch"
check "beside newer checkpoints" "$(run branch "${saving[@]}" --checkpoint.load_step 4)" 2
says "it is refused" branch "step-00000008 is newer than checkpoint.load_step = 4, and this run would mix its checkpoints"
check "unless nothing is saved" "$(run branch "${saving[@]}" --checkpoint.load_step 4 --checkpoint.load_only)" 0
says "which has metrics of its own" branch "checkpoint.load_only saves nothing: the metrics of this start are in $work/branch/metrics.1.jsonl"
check "the run keeps its own" "$(cmp "$work/base/metrics.jsonl" "$work/branch/metrics.jsonl" && grep -c . "$work/branch/metrics.1.jsonl")" 4
says "and knows what would save" branch "train without checkpoint.load_only, in another job.dump_folder"
with_step() { "$tessera" generate "$work/branch" --checkpoint.load_step "$1" --prompt-ids 1,2,3 --max-new-tokens 4 --print-ids >"$work/with_step.log" 2>&1; echo $?; }
on_two() { "$tessera" launch -n 2 -- eval "$work/branch" --parallelism.tensor_parallel_degree 2 --validation.dataset replay --validation.dataset_path "$here/../golden/llama_a/batches.safetensors" --validation.steps 1 "$@" >"$work/on_two.log" 2>&1; echo $?; }
check "so does eval, on two ranks" "$(on_two --checkpoint.load_step 4)" 0
check "which says, too, what is not there" "$(on_two --checkpoint.load_step 5)" 5
says "and names it" on_two "step-00000005"
check "a step and other weights" "$(on_two --checkpoint.load_step 4 --checkpoint.initial_load_path "$base")" 2
says "are too many" on_two "omit one of them"
check "generate takes a step that is named" "$(with_step 4)" 0
check "or says that it is not there" "$(with_step 5)" 5
says "and which" with_step "step-00000005"
mv "$work/branch/checkpoint/step-00000008" "$work/branch/kept"
check "when they are away" "$(run branch "${saving[@]}" --checkpoint.load_step 4 --optimizer.lr 1e-5)" 0
says "it starts there" branch "resumed after step 4"
check "the same command again" "$(run branch "${saving[@]}" --checkpoint.load_step 4 --optimizer.lr 1e-5 --training.steps 9)" 0
says "goes on from what it has saved since" branch "resumed after step 8"

# A jump back before the run has saved anything: to where it started, and in the same way.
cp -r "$work/base" "$work/jump" && rm -rf "$work/jump/checkpoint/step-00000008"
cp -r "$work/jump" "$work/skip"
same_rate=(--lr_scheduler.warmup_steps 0 --lr_scheduler.decay_ratio 0 "$exclude" optimizer)
check "a jump back" "$(run jump "${saving[@]}" "${same_rate[@]}" --debug.inject_faults 6:nan:0 --optimizer.on_nonfinite rewind)" 0
says "to the start" jump "rewound to step 4; training continues with sample 48"
check "two skipped steps" "$(run skip "${saving[@]}" "${same_rate[@]}" --debug.inject_faults 5:nan:0,6:nan:0)" 0
check "lead to the same weights and moments" "$(loss jump 5) $(loss jump 6)" "$(loss skip 7) $(loss skip 8)"

# A branch: all of another run's state, on another mesh and with another end. Without a change it computes what that run did.
whole=(--checkpoint.no_initial_load_model_only "${saving[@]}")
branch=("${whole[@]}" --checkpoint.initial_load_path "$work/base/checkpoint/step-00000004")
check "a branch" "$(run twin "${branch[@]}")" 0
says "begins where the other was" twin "resumed after step 4 from $work/base/checkpoint"
check "with the step after it" "$(steps twin)" "5 6 7 8 "
check "and the other's bits" "$(loss twin 5) $(loss twin 8)" "$(loss base 5) $(loss base 8)"
check "a branch on another mesh" "$(run turned "${branch[@]}" --training.local_batch_size 4 --parallelism.pipeline_parallel_degree 2)" 0
check "has them but for rounding" "$(awk -v a="$(loss turned 8)" -v b="$(loss base 8)" 'BEGIN { print (a - b < 1e-5 && b - a < 1e-5) ? "equal" : a " " b }')" equal
cooling=("${branch[@]}" --lr_scheduler.total_steps 10 --lr_scheduler.decay_ratio 0.6)
check "a branch with another rate" "$(run cooled "${cooling[@]}")" 0
last=$(loss cooled 8)
check "has other losses" "$([ "$last" != "$(loss twin 8)" ] && echo other)" other
check "the same command with one step more" "$(run cooled "${cooling[@]}" --training.steps 9)" 0
says "resumes from its own checkpoint" cooled "resumed after step 8 from $work/cooled/checkpoint"
rm -rf "$work/cooled/checkpoint"
check "without its checkpoints" "$(run cooled "${cooling[@]}")" 0
check "it begins again, to the same end" "$(loss cooled 8)" "$last"
says "and keeps its older metrics" cooled "starting from step 5 with new metrics, because this run has no checkpoint; the metrics of the last run are kept in $work/cooled/metrics.1.jsonl"
check "all of them" "$(sed -n 's/^{"step": *\([0-9]*\),.*/\1/p' "$work/cooled/metrics.1.jsonl" | tr '\n' ' ')" "5 6 7 8 9 "
check "a branch without moments" "$(run reset "${branch[@]}" "$exclude" optimizer,lr_scheduler)" 0
says "says so" reset "resumed after step 4 from $work/base/checkpoint, without optimizer, lr_scheduler"
check "and has other losses" "$([ "$(loss reset 8)" != "$(loss twin 8)" ] && echo other)" other
check "a branch that goes back before it has saved" "$(run back "${branch[@]}" --debug.inject_faults 6:nan:0 --optimizer.on_nonfinite rewind)" 0
says "begins again" back "rewound to step 4; training continues with sample 48"
check "a branch from the newest that has nothing to train" "$(run idle "${whole[@]}" --checkpoint.initial_load_path "$work/base/checkpoint")" 2
says "says why" idle "step-00000008 is of step 8, so that training.steps = 8 leaves nothing to train"
check "a branch from a folder without checkpoints" "$(run idle "${whole[@]}" --checkpoint.initial_load_path "$work")" 5
says "says which" idle "$work holds no checkpoint of Tessera"
check "a branch without a path" "$(run idle "${whole[@]}")" 2
says "says what it lacks" idle "continues the run of initial_load_path, which is not set"
check "a seed that continues" "$(run idle "${branch[@]}" --checkpoint.create_seed_checkpoint)" 2
says "is refused" idle "create_seed_checkpoint saves step 0, and a branch"

# Another model whose tensors have the same shapes.
sed -i 's/"rope_theta": 500000.0/"rope_theta": 10000.0/' "$work/config.json"
check "a resume with another model" "$(run twin "${branch[@]}")" 2
says "is refused" twin "$work/twin/checkpoint holds checkpoints of another model (rope_theta is 10000, was 500000); choose another job.dump_folder"
check "its weights may start one" "$(run stretched --checkpoint.initial_load_path "$base")" 0
says "which is told" stretched "the weights in $base are those of another model: rope_theta is 10000, was 500000"
check "all of its state, too" "$(run stretched2 "${branch[@]}")" 0
says "and that is told" stretched2 "are those of another model: rope_theta is 10000, was 500000"
llama 2 >"$work/config.json"

# Three layers where two are stored.
llama 3 >"$work/config.json"
check "another model" "$(run deep --checkpoint.initial_load_path "$base")" 2
says "is refused with a table" deep "missing  model/layers.2."
check "unless the job takes what fits" "$(run deep --checkpoint.initial_load_path "$base" --checkpoint.load_mismatch warn)" 0
says "and is told" deep "lacks tensors of this job, or has unexpected ones"
check "or does not care" "$(run deep2 --checkpoint.initial_load_path "$base" --checkpoint.load_mismatch ignore)" 0
check "in silence" "$(grep -c 'is not all' "$work/deep2.log")" 0
check "an unknown policy" "$(run deep3 --checkpoint.initial_load_path "$base" --checkpoint.load_mismatch lax)" 2
llama 2 | sed 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' >"$work/config.json"
check "a tied model" "$(run tied --checkpoint.initial_load_path "$base" --checkpoint.load_mismatch ignore)" 2
says "is told why" tied "it is tied to the embedding"
llama 2 >"$work/config.json"

# Out to Hugging Face and in again; what a file lacks.
"$tessera" ckpt export "$base" --to "$work/hf" >/dev/null
"$tessera" ckpt import "$work/hf" --to "$work/in" --files 2 >"$work/import.log" 2>&1; check "import" $? 0
says "says how to begin" import "use it as checkpoint.initial_load_path"
check "verify what was imported" "$("$tessera" ckpt verify "$work/in" >/dev/null; echo $?)" 0
check "a branch from a model alone" "$(run idle "${whole[@]}" --checkpoint.initial_load_path "$work/in")" 2
says "cannot continue" idle "holds only a model, so that no run can continue from it"
check "nor can one from Hugging Face weights" "$(run idle "${whole[@]}" --checkpoint.initial_load_path "$work/hf")" 5
says "and says how to start" idle "Hugging Face weights, which have no training state"
check "a start from imported weights" "$(run imported --checkpoint.initial_load_path "$work/in/step-00000000")" 0
check "and from the files themselves" "$(run direct --checkpoint.initial_load_path "$work/hf" --checkpoint.initial_load_in_hf)" 0
check "are the same" "$(loss imported 8)" "$(loss direct 8)"
check "in silence, where they are of this model" "$(grep -c 'another model' "$work/direct.log")" 0
sed -i 's/"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16/"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 8/' "$work/config.json"
check "a model with other heads of the same shape" "$(run heads --checkpoint.initial_load_path "$work/hf" --checkpoint.initial_load_in_hf)" 0
says "is told of them" heads "num_attention_heads is 8, was 4, num_key_value_heads is 4, was 2"
llama 2 >"$work/config.json"
check "and from those beside the tokenizer" "$(run beside --checkpoint.initial_load_in_hf --model.hf_assets_path "$work/hf")" 0
check "are these, too" "$(loss beside 8)" "$(loss direct 8)"
check "and lower than a fresh one" "$(awk -v a="$(loss imported 1)" -v b="$(loss base 8)" 'BEGIN { print (a < b + 0.2) }')" 1
cp -r "$work/base" "$work/hurt"
for shard in "$work/hurt/checkpoint/step-00000008"/shard-*; do
  for part in 2 3 4 5 6; do
    printf '\377\376\375' | dd of="$shard" bs=1 seek=$(($(stat -c %s "$shard") * part / 8)) conv=notrunc 2>"$work/dd.log"
  done
done
check "an export of a run whose latest checkpoint is damaged" "$("$tessera" ckpt export "$work/hurt" --to "$work/older" >"$work/older.log" 2>&1; echo $?)" 0
says "names it" older "skipped $work/hurt/checkpoint/step-00000008: "
says "and takes the one before" older "weights of step 4 as float32"
check "eval takes the folder of a run" "$("$tessera" eval "$work/base" --validation.dataset replay --validation.dataset_path "$here/../golden/llama_a/batches.safetensors" --validation.steps 1 >"$work/of_run.log" 2>&1; echo $?)" 0
check "and on a host that of GPUs with registered buffers" "$("$tessera" eval "$work/base" --parallelism.fsdp_register_buffers --validation.dataset replay --validation.dataset_path "$here/../golden/llama_a/batches.safetensors" --validation.steps 1 >"$work/of_gpus.log" 2>&1; echo $?)" 0
llama 3 >"$work/config.json"
check "files of another model" "$(run deep4 --checkpoint.initial_load_path "$work/hf" --checkpoint.initial_load_in_hf)" 4
check "of which what fits is taken" "$(run deep5 --checkpoint.initial_load_path "$work/hf" --checkpoint.initial_load_in_hf --checkpoint.load_mismatch warn)" 0
says "and told" deep5 "missing  model/layers.2.attention.wq.weight  there is no model.layers.2.self_attn.q_proj.weight"
"$tessera" ckpt import "$work/hf" --to "$work/in" >"$work/import.log" 2>&1; check "import onto itself" $? 2
"$tessera" ckpt import "$work/nowhere" --to "$work/in2" >"$work/import.log" 2>&1; check "import of nothing" $? 4
"$tessera" ckpt import "$work/hf" --to "$work/in2" --config "$work/job.toml" >"$work/import.log" 2>&1; check "import as another model" $? 4
says "is named" import "are these the weights of another model?"

# Often, because runs fail often; the clock of one rank decides.
llama 2 >"$work/config.json"
check "interval = auto" "$(run auto --checkpoint.enable --checkpoint.interval auto --checkpoint.mtbf_hours 0.000000000001)" 0
check "saves as often as saves take" "$([ "$(find "$work/auto/checkpoint" -name 'step-*' | wc -l)" -ge 2 ] && echo often)" often
check "rarely fails, rarely saves" "$(run auto2 --checkpoint.enable --checkpoint.interval auto; find "$work/auto2/checkpoint" -name 'step-*' | wc -l)" "0
1"
finish
