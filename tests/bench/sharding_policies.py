#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each sharding policy gathers, keeps and costs: prints the table of share/doc/tessera/measurements.

    sharding_policies.py TESSERA [--ranks 4] [--steps 8] [--rounds 3]

The debug Llama in float32 on random tokens, fully sharded over all ranks, two microbatches a step (accumulation), by turns.
Gathers, their bytes and the weights kept are counted by the run (metrics.jsonl); step time and memory are medians over the rounds.
"""
import argparse
import json
import pathlib
import random
import statistics
import struct
import subprocess
import tempfile

POLICIES = [["always"], ["default"], ["2"], ["auto"], ["never"], ["never", "--parallelism.fsdp_gradient_accumulation", "unsharded"]]
SEQ, VOCAB = 256, 2048


def write_replay(path, steps, rows):
    """Random tokens as a safetensors file of `inputs` and `labels`, int32 [steps, rows, SEQ]."""
    generator, count = random.Random(1), steps * rows * SEQ
    data = struct.pack(f"<{count}i", *(generator.randrange(VOCAB) for _ in range(count)))
    tensors = {name: {"dtype": "I32", "shape": [steps, rows, SEQ], "data_offsets": [i * len(data), (i + 1) * len(data)]}
               for i, name in enumerate(["inputs", "labels"])}
    header = json.dumps(tensors).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + data + data)


def run(program, folder, replay, ranks, steps, policy):
    """The run's metrics, one object a step."""
    command = [program, "launch", "-n", ranks, "--", "train", "--job.dump_folder", folder, "--training.dataset", "replay",
               "--training.dataset_path", replay, "--training.seq_len", SEQ, "--training.local_batch_size", 2,
               "--training.global_batch_size", 4 * ranks, "--training.steps", steps, "--activation_checkpoint.mode", "none",
               "--training.mixed_precision_param", "float32", "--parallelism.fsdp_reshard_after_forward", *policy]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    seen = {tuple(policy): [] for policy in POLICIES}
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        write_replay(work / "replay.safetensors", args.steps, 4 * args.ranks)
        for turn in range(args.rounds):
            for number, policy in enumerate(POLICIES):
                seen[tuple(policy)].append(run(args.program, work / f"{turn}-{number}", work / "replay.safetensors", args.ranks,
                                               args.steps, policy))
    print("| policy | gathers a step | MB gathered | MB kept | peak memory of a rank (MB) | step (ms) | waiting (ms) |")
    print("|---|---|---|---|---|---|---|")
    for policy, runs in seen.items():
        def median(key):
            return statistics.median(step[key] for steps in runs for step in steps[2:])
        name = policy[0] + (", sharded accumulation" if len(policy) > 1 else "")
        print(f"| `{name}` | {median('fsdp/gathers'):.0f} | {median('fsdp/gather_bytes') / 1e6:.1f} | {median('fsdp/kept_bytes') / 1e6:.1f} "
              f"| {median('memory_bytes') / 1e6:.0f} | {1e3 * median('step_seconds'):.0f} | {1e3 * median('comm/exposed_seconds'):.0f} |")


if __name__ == "__main__":
    main()
