# SPDX-License-Identifier: Apache-2.0
# What tests of the program from the outside share: `. job.sh TESSERA` gives a scratch folder, checks, and a small job that trains.
tessera=$(realpath "$1") here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
failures=0
export OMP_NUM_THREADS=1
check() { if [ "$2" = "$3" ]; then echo "ok    $1"; else echo "WRONG $1: got '$2', want '$3'"; failures=$((failures + 1)); fi; }

# llama LAYERS: the config.json of a small model.
llama() {
  cat <<J
{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": $1, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
 "intermediate_size": 192, "vocab_size": 256, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "rope_theta": 500000.0}
J
}

# job LAYERS LOCAL_BATCH <SECTIONS: $work/job.toml, 8 steps of 8 sequences; what is read follows.
job() {
  llama "$1" >"$work/config.json"
  cat - <(cat <<J
[model]
hf_config = "$work/config.json"
[training]
dataset = "replay"
dataset_path = "$here/../golden/llama_a/batches.safetensors"
seq_len = 64
local_batch_size = $2
global_batch_size = 8
steps = 8
mixed_precision_param = "float32"
[activation_checkpoint]
mode = "none"
J
  ) >"$work/job.toml"
}

# text_job LAYERS LOCAL_BATCH <SECTIONS: the same on the tokens of a text, of which there are enough for any number of steps.
text_job() {
  "$here/../jobs/tiny_assets.sh" "$tessera" "$work/assets"
  job "$@"
  sed -i 's/"vocab_size": 256/"vocab_size": 400/' "$work/config.json"
  sed -i -e 's#^dataset = .*#dataset = "tokens"#' -e "s#^dataset_path = .*#dataset_path = \"$work/assets/tokens\"#" \
    -e "s#^hf_config = .*#&\nhf_assets_path = \"$work/assets\"#" "$work/job.toml"
}

# run FOLDER [FLAG...]: trains on 4 ranks, or on $ranks; prints the exit code; the log is FOLDER.log. With TESSERA_SIM_PRELOAD on simulated GPUs.
run() {
  local on_ranks=("$tessera" launch -n "${ranks:-4}" -- train)
  [ -z "${TESSERA_SIM_PRELOAD-}" ] || on_ranks=("$here/../mpirun.sh" 390 "${ranks:-4}" "$tessera" train)
  timeout -k 10 400 "${on_ranks[@]}" "$work/job.toml" --job.dump_folder "$work/$1" "${@:2}" >"$work/$1.log" 2>&1
  echo $?
}
# weights FOLDER [STEP]: a hash of them; without a checkpoint, words that no other folder gives.
weights() { "$tessera" ckpt export "$work/$1/checkpoint/$(printf 'step-%08d' "${2:-8}")" --to "$work/$1.hf" --format safetensors --force >/dev/null && sha256sum <"$work/$1.hf/model.safetensors" || echo "no weights in $1"; }
# graphs_waited FOLDER: "yes" if ranks of tp waited in graphs. Step 1 is issued call by call: what the table has beyond its waits, graphs
# have waited.
graphs_waited() {
  awk -v all="$(grep -oE 'waiting in tp( +[0-9.]+){3}' "$work/$1.log" | awk '{print $6}')" \
    -v first="$(sed -nE 's|.*"comm/exposed_seconds": *([0-9.e-]+).*|\1|p' "$work/$1/metrics.jsonl" | head -n 1)" \
    'BEGIN {print (first > 0 && all > first + 0.001) ? "yes" : all " of " first}'
}
# Seconds since a run has ended a step, or has begun, until now.
since_last_step() { echo $(($(date +%s) - $(stat -c %Y "$work/$1/metrics.jsonl"))); }
steps() { sed 's/^{"step": *\([0-9]*\).*/\1/' "$work/$1/metrics.jsonl" | tr '\n' ' '; }

made() { [ ! -e "$work/$1/metrics.jsonl" ] || wc -l <"$work/$1/metrics.jsonl"; }

# TERM to the launcher of run FOLDER [FLAG...] once it has made another step; the exit code is the launcher's. As `timeout` sends it: to the
# launcher, and at once to the group that it is in.
run_until_term() {
  local before; before=$(made "$1")
  timeout 400 "$tessera" launch -n 4 -- train "$work/job.toml" --job.dump_folder "$work/$1" "${@:2}" >"$work/$1.log" 2>&1 &
  local job=$!
  until [ "$(made "$1")" != "$before" ] || ! kill -0 $job 2>/dev/null; do sleep 0.02; done
  kill -TERM $job
  wait $job
}

# Last line of a test: what the jobs said, if something was wrong.
finish() {
  [ $failures != 0 ] || return 0
  for log in "$work"/*.log; do echo "--- $log"; tail -n 15 "$log"; done
  exit 1
}
