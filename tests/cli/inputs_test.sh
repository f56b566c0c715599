#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a job reads, from the outside: the sample text, data and tokenizer by short flags and by name.
#   inputs_test.sh TESSERA
set -uo pipefail
. "$(dirname "$0")/job.sh" "$1"
cd "$work"
sample=$here/../../share/tessera/datasets/c4_test

check "the sample text is what its grammar writes" "$(python3 "$sample/make.py" | cmp - "$sample/data.jsonl" && echo same)" same
"$tessera" tokenizer train --vocab-size 2048 -o made "$sample/data.jsonl" >/dev/null 2>&1
check "and its tokenizer is made of it" "$(cmp made/tokenizer.json "$sample/tokenizer.json" && cmp made/tokenizer_config.json "$sample/tokenizer_config.json" && echo same)" same

# TorchTitan's debug_model.toml, as far as it is about data and model, with the sizes of a test.
cat >debug_model.toml <<'J'
[job]
dump_folder = "./outputs"
[metrics]
log_freq = 1
[model]
name = "llama3"
flavor = "debugmodel"
# test folder with tokenizer.json, for debug purpose only
hf_assets_path = "./tests/assets/tokenizer"
[training]
local_batch_size = 1
seq_len = 64
steps = 2
dataset = "c4_test"  # supported datasets: c4_test (2K), c4 (177M)
mixed_precision_param = "float32"
J
check "TorchTitan's debug job trains as it is" "$("$tessera" train debug_model.toml >log 2>&1; echo $?)" 0
check "which one line says" "$(grep -c 'there is no ./tests/assets/tokenizer: c4_test uses the tokenizer that comes with it' log)" 1
check "two steps" "$(wc -l <outputs/metrics.jsonl)" 2
check "the record of the run names the files" "$(grep -c "/share/tessera/datasets/c4_test" outputs/config.toml)" 2
finish
