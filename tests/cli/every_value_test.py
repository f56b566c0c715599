#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains two steps with every value that a key accepts by name, one at a time: it trains, or is refused with a message.

    every_value_test.py TESSERA BATCHES [--every N]

BATCHES: a file for training.dataset = "replay". --every N: each N-th value, and all of the section [training].
"""
import argparse
import json
import os
import pathlib
import subprocess
import tempfile

DONE, REFUSED = 0, (2, 3, 4, 5)  # 2: usage; 3: what this machine or build lacks; 4: data; 5: weights
CONFIG = {"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "num_key_value_heads": 2, "head_dim": 16, "intermediate_size": 192, "vocab_size": 256, "rms_norm_eps": 1e-5,
          "tie_word_embeddings": False, "rope_theta": 500000.0}
JOB = """[model]
hf_config = "config.json"
[training]
dataset = "replay"
dataset_path = "{batches}"
seq_len = 64
local_batch_size = 8
global_batch_size = 8
steps = 2
[lr_scheduler]
warmup_steps = 1
"""


def values(tessera):
    """(key, value) of booleans and of keys with a list of values, but for those that are always refused."""
    for option in json.loads(subprocess.run([tessera, "config", "keys", "--json"], check=True, capture_output=True).stdout):
        allowed = ["true", "false"] if option["type"] == "boolean" else option["allowed"]
        works = [*option["works_with"], str(option["default"]).lower()]
        for value in allowed:
            if option["support"] != "refused" or value in works:
                yield option["key"], value


def trains(tessera, folder, key, value):
    """The exit code, and the output, of a run in a folder of its own."""
    done = subprocess.run([tessera, "train", folder / "job.toml", f"--job.dump_folder={folder / 'run'}", f"--{key}={value}"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300, cwd=folder,
                          env={**os.environ, "OMP_NUM_THREADS": "1"})
    return done.returncode, done.stdout


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tessera")
    parser.add_argument("batches", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=1)
    arguments = parser.parse_args()
    trained = refused = 0
    wrong = []
    for index, (key, value) in enumerate(values(arguments.tessera)):
        if index % arguments.every and not key.startswith("training."):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "config.json").write_text(json.dumps(CONFIG))
            (folder / "job.toml").write_text(JOB.format(batches=arguments.batches.resolve()))
            code, output = trains(os.path.abspath(arguments.tessera), folder, key, value)
        trained += code == DONE
        refused += code in REFUSED
        if code != DONE and (code not in REFUSED or "tessera: " not in output or "internal error" in output):
            wrong.append(f"--{key}={value}: exit code {code}\n{output[-600:]}")
    print(f"{trained} values train, {refused} are refused, {len(wrong)} do neither", *wrong, sep="\n")
    return 1 if wrong or not trained else 0


if __name__ == "__main__":
    raise SystemExit(main())
