#!/usr/bin/env bash
# Life of a run on 4 ranks: bitwise repeatable, killed and resumed, stopped by a signal, wrong configuration and data.
#   life_cycle_test.sh TESSERA
set -uo pipefail
tessera=$(realpath "$1") here=$(dirname "$(realpath "$0")")
golden=$here/../golden/llama_a
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
failures=0
export OMP_NUM_THREADS=1
check() { if [ "$2" = "$3" ]; then echo "ok    $1"; else echo "WRONG $1: got '$2', want '$3'"; failures=$((failures + 1)); fi; }

cat >"$work/config.json" <<'J'
{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
 "intermediate_size": 192, "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "rope_theta": 500000.0}
J
cat >"$work/job.toml" <<J
[model]
hf_config = "$work/config.json"
[training]
dataset = "replay"
dataset_path = "$golden/batches.safetensors"
seq_len = 64
local_batch_size = 4
global_batch_size = 8
steps = 8
mixed_precision_param = "float32"
[parallelism]
pipeline_parallel_degree = 2
data_parallel_shard_degree = 2
[lr_scheduler]
warmup_steps = 2
[checkpoint]
enable = true
interval = 2
[debug]
deterministic = true
[activation_checkpoint]
mode = "none"
J
# run FOLDER [FLAG...]: trains on 4 ranks; prints the exit code; the log is FOLDER.log
run() { timeout 120 "$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/$1" "${@:2}" >"$work/$1.log" 2>&1; echo $?; }
weights() { "$tessera" ckpt export "$work/$1/checkpoint/step-00000008" --to "$work/$1.hf" --format safetensors >/dev/null && sha256sum <"$work/$1.hf/model.safetensors"; }
steps() { sed 's/^{"step": *\([0-9]*\).*/\1/' "$work/$1/metrics.jsonl" | tr '\n' ' '; }

check "an uninterrupted run ends with 0" "$(run whole)" 0
reference=$(weights whole)
check "the same run again has nothing left to do" "$(run whole)" 0
check "and its weights stay" "$(weights whole)" "$reference"
check "a second run has the same bits" "$(run again)$(weights again)" "0$reference"

# kill -9 of one rank at a random time, then the same command line again.
"$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/killed" >"$work/killed.log" 2>&1 &
job=$!
until [ -e "$work/killed/checkpoint/step-00000002" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
pkill -KILL -f -n -- "tessera train $work/job.toml --job.dump_folder $work/killed" || echo "note: the run ended before it could be killed"
wait $job
check "a killed run goes on" "$(run killed)" 0
check "and ends with the same bits" "$(weights killed)" "$reference"
check "with every step once in metrics.jsonl" "$(steps killed)" "1 2 3 4 5 6 7 8 "

# TERM to the launcher: a checkpoint at the next step boundary, exit code 75.
"$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/signalled" --training.steps 20 --checkpoint.interval 1000 >"$work/signalled.log" 2>&1 &
job=$!
until [ -s "$work/signalled/metrics.jsonl" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
kill -TERM $job
wait $job
check "after a signal the code is 75" $? 75
check "and a checkpoint is there" "$(find "$work/signalled/checkpoint" -maxdepth 1 -name 'step-????????' | wc -l)" 1

check "an unknown key ends all ranks with 2" "$(run wrong --training.stepz 3)" 2
check "with a suggestion" "$(grep -c 'training.steps' "$work/wrong.log")" 1
check "a mesh that does not fit" "$(run wrong2 --parallelism.tensor_parallel_degree 3)" 2
sed 's/"num_attention_heads": 4/"num_attention_heads": 6/' "$work/config.json" >"$work/six_heads.json"
check "heads that tp does not divide" "$(run wrong3 --model.hf_config "$work/six_heads.json" --parallelism.tensor_parallel_degree 4 --parallelism.pipeline_parallel_degree 1 --parallelism.data_parallel_shard_degree 1)" 2
check "missing data is 4" "$(run wrong4 --training.dataset_path "$work/nowhere.safetensors")" 4
check "too few steps of data is 4" "$(run wrong5 --training.steps 30 --checkpoint.interval 100)" 4
check "said once" "$(grep -c 'batches.safetensors' "$work/wrong5.log")" 1
check "a checkpoint that is not there is 5" "$(run wrong6 --checkpoint.load_step 77)" 5
touch "$work/file"
timeout 60 "$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/file/sub" >"$work/unwritable.log" 2>&1
check "a folder that cannot be made is 3" $? 3

if [ $failures != 0 ]; then
  for log in "$work"/*.log; do echo "--- $log"; tail -n 15 "$log"; done
  exit 1
fi
