#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tessera train`, `generate` and `eval` on simulated GPUs: a checkpoint, a resume on another mesh, and in deterministic mode
# the host's bits.
#   train_test.sh TESSERA PRELOAD      the library to preload
set -uo pipefail
. "$(dirname "$0")/../cli/job.sh" "$1"
. "$(dirname "$0")/on_device.sh" "$2"
job 4 2 <<J
[checkpoint]
enable = true
interval = 2
[lr_scheduler]
total_steps = 8
[debug]
deterministic = true
J

cube="--parallelism.pipeline_parallel_degree 2 --parallelism.data_parallel_shard_degree 2 --parallelism.tensor_parallel_degree 2"

# The largest relative difference of two columns, in millionths; "lines" if they have not the same length.
apart() {
  paste <(losses "$1") <(losses "$2") |
    awk 'NF != 2 {print "lines"; bad = 1; exit} {d = ($1 - $2) / $1 * 1e6; d = d < 0 ? -d : d; if (d > most) most = d} END {if (!bad) printf "%d\n", most}'
}

# The kernels of GPUs: 2 x 2 x 2 ranks, resumed on 2 with tensor parallelism.
check "2 x 2 x 2 on the host" "$(on host 8 cube $cube --training.steps 2)" 0
check "resumed on 2 ranks" "$(on host 2 cube --parallelism.tensor_parallel_degree 2 --training.steps 3)" 0
check "2 x 2 x 2 simulated GPUs" "$(on device 8 gpu $cube --training.steps 2)" 0
check "it says where it trains" "$(grep -c 'on cuda:0' "$work/gpu.log")" 1
check "it says for which ranks the GPUs wait" "$(grep -oE 'waiting in (pp|dp_shard|tp)( +[0-9.]+){3}' "$work/gpu.log" | awk '$6 > 0 {print $3}' | sort | xargs)" "dp_shard pp tp"
check "a resume on 2 GPUs, tensor parallel" "$(on device 2 gpu --parallelism.tensor_parallel_degree 2 --training.steps 3)" 0
check "losses as on the host, to 20 millionths" "$(awk -v d="$(apart cube gpu)" 'BEGIN {print (d ~ /^[0-9]+$/ && d <= 20) ? "yes" : d}')" yes

# The host's kernels on the device: everything else is the device's, and no bit may differ.
export TESSERA_SIM_KERNELS=host
check "2 x 2 x 2 with the host's kernels" "$(on device 8 bits $cube --training.steps 2)" 0
check "a resume on 2 GPUs" "$(on device 2 bits --parallelism.tensor_parallel_degree 2 --training.steps 3)" 0
check "losses are the host's, all digits" "$(losses bits)" "$(losses cube)"
check "weights are the host's, all bits" "$(weights bits 3)" "$(weights cube 3)"

# One process by itself: generation and logits.
python3 - "$work/in.safetensors" <<P
import json, struct, sys
ids = [7 * i % 256 for i in range(128)]
head = json.dumps({"input_ids": {"dtype": "I32", "shape": [2, 64], "data_offsets": [0, 4 * len(ids)]}}).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(head)) + head + struct.pack(f"<{len(ids)}i", *ids))
P
infer() { # FOLDER: tokens, and a hash of logits
  "$tessera" generate "$work/bits" --prompt-ids 1,2,3 --print-ids --max-new-tokens 16 2>"$work/$1.log"
  "$tessera" eval "$work/bits/config.toml" --job.dump_folder "$work/bits" --logits "$work/$1.out" --input "$work/in.safetensors" >>"$work/$1.log" 2>&1
  sha256sum <"$work/$1.out"
}
check "tokens and logits are the host's" "$(LD_PRELOAD=$preload infer alone)" "$(infer plain)"

check "no race was found" "$(cat "$work"/*.log | grep -c '^race:')" 0
finish
