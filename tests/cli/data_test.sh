#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Data from the outside: mixtures of several files, validation, windows that are held out, looking into samples, and files or
# mixtures that are refused before anything is allocated.
#   data_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
ranks=2
job 2 2 <<J
[lr_scheduler]
warmup_steps = 2
total_steps = 8
[checkpoint]
enable = true
interval = 4
[debug]
deterministic = true
J
sed -i 's/"vocab_size": 256/"vocab_size": 400/' "$work/config.json"
sed -i '/^dataset/d' "$work/job.toml"

for i in $(seq 1 400); do echo "{\"text\": \"page $i of the web, of which there are $((i * i)) more\"}"; done >"$work/web.jsonl"
for i in $(seq 1 150); do echo "{\"text\": \"chapter $i of a book that says $((7 * i)) times the same\"}"; done >"$work/books.jsonl"
"$tessera" tokenizer train --vocab-size 400 -o "$work/tok" "$work/web.jsonl" >/dev/null 2>&1
prepare() { "$tessera" data prepare --tokenizer "$work/tok" -o "$work/$1" "${@:2}" >/dev/null 2>&1; }
mkdir "$work/web"
prepare web/1.tokens "$work/web.jsonl" && prepare web/2.tokens --seed 1 "$work/web.jsonl" && prepare books.tokens "$work/books.jsonl"
mix=(--training.dataset tokens --training.mixture "$work/web/*.tokens,3;$work/books.tokens,1")
held=(--validation.split 0.2 --validation.enable --validation.freq 4)

# column NAME FOLDER: the values of a metric, one a step that has it.
column() { grep -o "\"$1\": [^,}]*" "$work/$2/metrics.jsonl" | sed 's/.*: //'; }
sum() { column "$1" "$2" | awk '{s += $1} END {print s + 0}'; }
near() { awk -v a="$1" -v b="$2" 'BEGIN {d = a - b; if (d < 0) d = -d; print (a > 0 && d < 1e-5 * a) ? "near" : a " and " b}'; }

check "a mixture trains" "$(run whole "${mix[@]}" "${held[@]}")" 0
check "three samples of four are of the web" "$(sum data/web/samples whole)" 48
check "the others of books" "$(sum data/books/samples whole)" 16
check "each has a loss of its own, whose mean is the step's" "$(paste <(column loss whole) <(column data/web/loss whole) <(column data/books/loss whole) \
  <(column data/web/samples whole) | awk '{d = $1 - ($2 * $4 + $3 * (8 - $4)) / 8; if (d < 0) d = -d; if (d > 1e-12 || $2 == $3) wrong++} END {print NR, wrong + 0}')" "8 0"
check "the loss is validated after the first step and each fourth" "$(column validation/loss whole | wc -l)" 3
check "which the log says" "$(grep -c 'step 8: validation loss' "$work/whole.log")" 1
check "for each source too" "$(column validation/books/loss whole | wc -l)" 3
check "without validation" "$(run silent "${mix[@]}" --validation.split 0.2)$(column validation/loss silent)" 0
check "the weights have the same bits" "$(weights silent)" "$(weights whole)"
check "a run in two halves" "$(run half "${mix[@]}" "${held[@]}" --training.steps 4)$(run half "${mix[@]}" "${held[@]}")" 00
check "has the same bits" "$(weights half)" "$(weights whole)"
check "reads the same" "$(column data/books/samples half)" "$(column data/books/samples whole)"
check "and validates the same" "$(column validation/loss half)" "$(column validation/loss whole)"
check "on with other data" "$(run half "${mix[@]}" --validation.split 0.3 --training.steps 10 --lr_scheduler.total_steps 10)" 2
check "it does not go" "$(grep -c '^tessera: .*step-00000008 was trained on other data' "$work/half.log")" 1
check "unless it begins them anew" "$(run half "${mix[@]}" --validation.split 0.3 --training.steps 10 --lr_scheduler.total_steps 10 \
  --checkpoint.exclude_from_loading dataloader)" 0
check "another mesh" "$(ranks=4 run other "${mix[@]}" "${held[@]}" --training.local_batch_size 4 --parallelism.pipeline_parallel_degree 2 \
  --parallelism.data_parallel_shard_degree 1 --parallelism.tensor_parallel_degree 2)" 0
check "validates as many tokens" "$(column validation/tokens other)" "$(column validation/tokens whole)"
check "to the same loss" "$(near "$(column validation/loss other | tail -n 1)" "$(column validation/loss whole | tail -n 1)")" near
check "text is validated on, too" "$(run text --training.dataset_path "$work/web.jsonl" --model.hf_assets_path "$work/tok" \
  --validation.enable --validation.dataset_path "$work/books.jsonl" --validation.samples 5)" 0
check "so many samples of it" "$(column validation/tokens text | head -n 1)" 320

# evaluated RANKS FLAG...: what eval says of the latest checkpoint of the first run.
evaluated() {
  timeout 400 "$tessera" launch -n "$1" -- eval "$work/job.toml" "${mix[@]}" "${held[@]}" --job.dump_folder "$work/whole" --json "${@:2}" 2>"$work/eval.log" |
    python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["loss"], d["tokens"], " ".join(d["parts"]))'
}
read -r loss tokens parts < <(evaluated 2 --parallelism.tensor_parallel_degree 2)
check "eval finds the loss of the last validation" "$(near "$loss" "$(column validation/loss whole | tail -n 1)")" near
check "over the same tokens and sources" "$tokens $parts" "$(column validation/tokens whole | tail -n 1) web books"
check "eval of a pipeline" "$(near "$(evaluated 4 --parallelism.pipeline_parallel_degree 2 --training.local_batch_size 4 --validation.local_batch_size 3 | cut -d' ' -f1)" "$loss")" near
check "eval without data to validate on" "$("$tessera" eval "$work/job.toml" --training.dataset_path "$work/books.tokens" >/dev/null 2>&1; echo $?)" 2

# A fault's batch, with its documents, runs again by the words that its report gives.
cp "$work/job.toml" "$work/plain.toml"
"$tessera" config show "$work/plain.toml" "${mix[@]}" "${held[@]}" --training.document_mask >"$work/job.toml"
check "a fault in packed documents" "$(run fault --debug.inject_faults 5:nan:1)" 0
bundle=$work/fault/faults/step-00000005
read -ra again < <(sed -n 's/^ *"replay": "tessera train JOB.toml --job.dump_folder ELSEWHERE \(.*\)".*/\1/p' "$bundle/fault.json")
check "is run again" "$(run again "${again[@]}")" 0
check "to the loss that it had" "$(near "$(column loss again)" "$(column loss fault | sed -n 5p)")" near
cp "$work/plain.toml" "$work/job.toml"
check "a replay file without documents" "$(run no --training.document_mask --training.dataset_path "$here/../golden/llama_a/batches.safetensors" --training.dataset replay)" 2
check "cannot be masked" "$(grep -c 'batches.safetensors does not mark them' "$work/no.log")" 1
check "samples of a replay file" "$("$tessera" data inspect "$work/job.toml" --training.dataset replay --training.dataset_path "$bundle/batch.safetensors" --sample 7 | grep -c '^sample  *7$')" 1

inspect() { "$tessera" data inspect "$@"; }
check "a token file is looked into" "$(inspect "$work/books.tokens" --tokenizer "$work/tok" --tokens 12 | grep -cE '^(documents +150|content +hash OK|first text .*chapter.*)$')" 3
check "for programs" "$(inspect "$work/books.tokens" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(sum(c["documents"] for c in d["document_lengths"]), len(d["first_tokens"]))')" "150 16"
check "samples tell their sources" "$(inspect "$work/job.toml" "${mix[@]}" --json $(seq -f '--sample %.0f' 0 63) | python3 -c '
import collections, json, sys
print(sorted(collections.Counter(s["source"] for s in json.load(sys.stdin)).items()))')" "[('books', 16), ('web', 48)]"
check "a sample that is none" "$(inspect "$work/job.toml" "${mix[@]}" --sample -3 2>/dev/null; echo $?)" 2

# refused WHAT CODE SAID FLAG...: one message, the exit code, and no step.
refused() {
  check "$1" "$(run no "${@:4}")" "$2"
  check "  said once" "$(grep -c '^tessera: ' "$work/no.log") $(grep -cE -- "$3" "$work/no.log")" "1 1"
  check "  before a step" "$([ -e "$work/no/metrics.jsonl" ] && echo there)" ""
}
tokens=(--training.dataset tokens --training.dataset_path)
head -c -9 "$work/books.tokens" >"$work/short.tokens"
refused "a truncated token file" 4 'short.tokens. is truncated' "${tokens[@]}" "$work/short.tokens"
(head -c 24 "$work/books.tokens"; printf x; tail -c +26 "$work/books.tokens") >"$work/header.tokens"
refused "a damaged header" 4 'header.tokens. has a damaged header' "${tokens[@]}" "$work/header.tokens"
refused "one damaged file of several" 4 'short.tokens' --training.mixture "$work/books.tokens,1;$work/short.tokens,1"
printf x | cat - "$work/books.tokens" >"$work/magic.tokens"
refused "a file that is none" 4 'magic.tokens. is not a token file' "${tokens[@]}" "$work/magic.tokens"
refused "no file" 4 'nowhere' "${tokens[@]}" "$work/nowhere.tokens"
refused "a pattern of nothing" 4 'no file matches' "${tokens[@]}" "$work/*.nothing"
mkdir "$work/empty"
refused "an empty source" 4 'no token file' --training.mixture "$work/books.tokens,1;$work/empty,1"
refused "a window that is longer than a source" 4 'books.tokens. has [0-9]+ tokens, too few' "${tokens[@]}" "$work/books.tokens" --training.seq_len 8192
"$tessera" tokenizer train --vocab-size 300 -o "$work/tok2" "$work/web.jsonl" >/dev/null 2>&1
"$tessera" data prepare --tokenizer "$work/tok2" -o "$work/other.tokens" "$work/books.jsonl" >/dev/null 2>&1
refused "different vocabularies" 4 'different tokenizers' --training.mixture "$work/books.tokens,1;$work/other.tokens,1"
refused "those of validation, too" 4 'different tokenizers' "${tokens[@]}" "$work/books.tokens" --validation.enable \
  --validation.dataset_path "$work/other.tokens"
refused "a weight of 0" 2 'weight above 0' --training.mixture "$work/books.tokens,0"
refused "a share that holds out nothing" 4 'validation.split' "${tokens[@]}" "$work/books.tokens" --validation.split 1e-9
refused "validation without data" 2 'validation.split' "${tokens[@]}" "$work/books.tokens" --validation.enable
(head -c 200 "$work/books.tokens"; printf '\377\377'; tail -c +203 "$work/books.tokens") >"$work/id.tokens"
check "an id beyond the vocabulary ends all ranks with 4" "$(run id "${tokens[@]}" "$work/id.tokens" --training.steps 20 --lr_scheduler.total_steps 20)" 4
check "  and is named" "$(grep -cE "id.tokens. is damaged [(]id 65535" "$work/id.log")" 1
check "a damaged file is not inspected" "$(inspect "$work/short.tokens" >/dev/null 2>&1; echo $?)" 4
(head -c 300 "$work/books.tokens"; printf x; tail -c +302 "$work/books.tokens") >"$work/ids.tokens"
check "nor one of other tokens than it had" "$(inspect "$work/ids.tokens" 2>&1 >/dev/null | grep -c 'ids.tokens. is damaged')" 1
finish
