#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Values of a run, as first_hour.sh reads them:  run_values.py RUN_FOLDER CONFIG_JSON SEQ <LOG

Speeds are medians over all steps but the first three. MFU is given twice: with attention counted whole, as TorchTitan does,
and with half of it, since a causal mask needs no more (tessera/metrics/flops.hpp has the formulas).
"""
import json
import re
import statistics
import sys
from pathlib import Path

UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}


def causal_share(config, seq):
    """Operations of a token with half of attention, over those with all of it."""
    dim, layers, heads, head = (config[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "head_dim"))
    kv, vocab = config["num_key_value_heads"], config["vocab_size"]
    hidden = config.get("moe_intermediate_size", config["intermediate_size"]) * config.get("num_experts_per_tok", 1)
    weights = layers * (dim * head * (2 * heads + 2 * kv) + 3 * dim * hidden + 2 * dim) + dim * vocab + dim
    attention = 6 * layers * heads * 2 * head * seq
    return (6 * weights + attention / 2) / (6 * weights + attention)


def main(folder, config, seq):
    steps = [json.loads(line) for line in (Path(folder) / "metrics.jsonl").read_text().splitlines()]
    late = steps[3:] or steps
    print(f"@ tokens per second: {statistics.median(s['tps'] for s in late):.1f} per GPU")
    print(f"@ step: {statistics.median(s['step_seconds'] for s in late):.4f} s")
    if late[-1]["mfu"] is not None:
        mfu = statistics.median(s["mfu"] for s in late)
        share = causal_share(json.loads(Path(config).read_text()), int(seq))
        print(f"@ MFU: {100 * mfu:.2f} % with attention counted whole")
        print(f"@ MFU causal: {100 * mfu * share:.2f} % with half of attention")
    print(f"@ peak memory: {max(s['memory_bytes'] for s in steps) / 2**30:.3f} GiB")
    kinds = re.search(r"memory at the peak: \S+ \S+ on rank \d+: ([^;\n]*)(.*)", sys.stdin.read())
    for what in kinds.group(1).split(", "):
        kind, number, unit = what.rsplit(" ", 2)
        print(f"@ memory at the peak, {kind}: {float(number) * UNITS[unit] / 2**30:.4f} GiB")
    print(kinds.group(2).lstrip("; "))


main(*sys.argv[1:])
