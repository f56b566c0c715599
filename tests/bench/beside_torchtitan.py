#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tessera and TorchTitan 0.2.2 on the same text, model and mesh, by turns; prints `name ours theirs ratio target`.

    beside_torchtitan.py TESSERA TITAN SHARED_BENCH [--pairs 5] [--steps 12] [--dtype float32] [--meshes one,cube]
                         [--imitate avx2] [--batch 8] [--model m45]

TESSERA: the program. TITAN: a folder that SHARED_BENCH/titan-setup.sh has made (TorchTitan's own trainer on CPU with gloo).
The debug Llama (or --model m45: 8 layers, dim 512, 16,384 words) in float32 or bfloat16: --batch sequences of 256 tokens a
data-parallel rank; one rank with two threads (one), two ranks (fsdp2, tp2, pp2), and 2 x 2 x 2 ranks (cube). --imitate avx2
limits both programs and their libraries to AVX2.
First loss: from the start of the launcher to the end of step 1. Tokens a second: from the median step after the third.
Memory: the largest resident size of a rank.
The medians of all pairs count. A pair beside which others used more than 0.12 cores is run again (at most as often as --pairs).
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

from bfloat16 import AVX2

MODEL = ["--training.seq_len", "256", "--activation_checkpoint.mode", "none"]
TOKENS = 256  # of a sequence
FSDP2 = ["--parallelism.data_parallel_shard_degree", "2"]
TP2 = ["--parallelism.tensor_parallel_degree", "2"]
PP2 = ["--parallelism.pipeline_parallel_degree", "2"]
CUBE = ["--parallelism.pipeline_parallel_degree", "2", "--parallelism.tensor_parallel_degree", "2", *FSDP2]
# Ranks, threads of each, flags, data-parallel ranks.
MESHES = {"one": (1, 2, [], 1), "fsdp2": (2, 1, FSDP2, 2), "tp2": (2, 1, TP2, 1), "pp2": (2, 1, PP2, 1),
          "cube": (8, 1, CUBE, 2)}
# Targets for tokens a second, by model and type; bfloat16 on AVX-512 (10 with --imitate avx2).
TARGETS = {("debugmodel", "float32"): {"one": 1.4, "fsdp2": 1.5, "tp2": 2, "pp2": 1.5, "cube": 4},
           ("debugmodel", "bfloat16"): dict.fromkeys(MESHES, 1.5),
           ("m45", "float32"): {"one": 1.2, "cube": 2}}
# The model that titan.py calls m45.
M45 = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 16384, "hidden_size": 512,
       "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8,
       "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 2048, "tie_word_embeddings": False}


def busy_seconds():
    """Processor seconds of the whole machine so far."""
    fields = [int(x) for x in pathlib.Path("/proc/stat").read_text().split("\n")[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / os.sysconf("SC_CLK_TCK")


def children_seconds():
    t = os.times()
    return t.children_user + t.children_system


def foreign_cores(function):
    """The function's result, and how many cores others used while it ran."""
    busy, own, start = busy_seconds(), children_seconds(), time.monotonic()
    result = function()
    others = busy_seconds() - busy - (children_seconds() - own)
    return result, max(0.0, others / (time.monotonic() - start))


def throughput(step_seconds, tokens):
    return tokens / statistics.median(step_seconds[3:])


class Tessera:
    def __init__(self, program, titan, work, model):
        self.program, self.titan, self.work, self.runs = program, titan, work, 0
        (work / "config.json").write_text(json.dumps(M45))
        self.model = ["--model.hf_config", work / "config.json"] if model == "m45" else ["--model.name", "llama3", "--model.flavor", model]
        subprocess.run([program, "data", "prepare", "--tokenizer", titan / "data/tok2k", "-o", work / "tokens",
                        titan / "data/kjv/data.json"], check=True, stdout=subprocess.DEVNULL)

    def run(self, ranks, threads, steps, flags, tokens):
        self.runs += 1
        folder = self.work / f"run{self.runs}"
        train = ["train", "--job.dump_folder", folder, *self.model, "--model.hf_assets_path", self.titan / "data/tok2k", "--training.dataset", "tokens", "--training.dataset_path",
                 self.work / "tokens", "--lr_scheduler.warmup_steps", "2", "--training.steps", str(steps), *MODEL, *flags]
        command = [self.program, "launch", "-n", str(ranks), "--", *train] if ranks > 1 else [self.program, *train]
        start = time.time()
        job = subprocess.Popen([str(w) for w in command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "OMP_NUM_THREADS": str(threads)})
        first = self.first_loss(job, folder / "metrics.jsonl") - start
        _, errors = job.communicate()
        if job.returncode:
            raise SystemExit(f"tessera ended with {job.returncode}: {errors}")
        lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        return first, throughput([line["step_seconds"] for line in lines], tokens), max(line["memory_bytes"] for line in lines)

    @staticmethod
    def first_loss(job, metrics):
        while job.poll() is None:
            if metrics.exists() and metrics.stat().st_size > 0:
                return time.time()
            time.sleep(0.01)
        raise SystemExit(f"tessera ended before its first step: {job.stderr.read()}")


class TorchTitan:
    def __init__(self, folder, scripts, work, model):
        self.folder, self.scripts, self.work, self.model = folder, scripts, work, model

    def run(self, ranks, threads, steps, flags, tokens):
        out = self.work / "titan"
        done = subprocess.run([str(w) for w in (self.scripts / "titan-run.sh", self.folder, ranks, threads, out, "--training.steps", steps,
                                                "--model.flavor", self.model, *MODEL, *flags)],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            raise SystemExit(f"TorchTitan ended with {done.returncode}: {done.stdout[-3000:]}")
        seen = [json.loads((self.work / f"titan.rank{r}.json").read_text()) for r in range(ranks)]
        slowest = [max(times) for times in zip(*(rank["steps"] for rank in seen))]
        return max(rank["start"]["first_step"] for rank in seen), throughput(slowest, tokens), max(rank["hwm"] for rank in seen)


def one_pair(ours, theirs, theirs_first, arguments):
    if theirs_first:
        other = theirs.run(*arguments)
        return ours.run(*arguments), other
    return ours.run(*arguments), theirs.run(*arguments)


def compare(ours, theirs, pairs, *arguments):
    """(first loss, tokens a second, memory) of both, pair by pair. The second of two runs is often slower: they take turns."""
    kept, repeats = [], 0
    while len(kept) < pairs:
        pair, others = foreign_cores(lambda: one_pair(ours, theirs, len(kept) % 2 == 1, arguments))
        if others > 0.12 and repeats < pairs:
            repeats += 1
            print(f"# a pair beside {others:.2f} foreign cores is run again", flush=True)
            continue
        kept.append(pair)
        (ours_first, ours_rate, ours_memory), (first, rate, memory) = pair
        print(f"# first loss {ours_first:.2f} {first:.2f} s, {ours_rate:.0f} {rate:.0f} tokens/s, "
              f"{ours_memory / 2**20:.0f} {memory / 2**20:.0f} MiB", flush=True)
    return kept


def report(name, pairs, index, target, unit=1):
    ours, theirs = (statistics.median(pair[side][index] for pair in pairs) / unit for side in (0, 1))
    ratio = statistics.median(pair[0][index] / pair[1][index] for pair in pairs)
    print(f"{name:24} {ours:9.2f} {theirs:9.2f} {ratio:6.2f} {target}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tessera", "titan", "shared_bench"):
        parser.add_argument(name, type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--meshes", default="one,cube")
    parser.add_argument("--imitate", choices=["avx2"])
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--model", choices=["debugmodel", "m45"], default="debugmodel")
    given = parser.parse_args()
    if given.imitate:
        os.environ.update(AVX2)
    print(f"{'name':24} {'ours':>9} {'theirs':>9} {'ratio':>6} target")
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        ours, theirs = (Tessera(given.tessera, given.titan, work, given.model),
                        TorchTitan(given.titan, given.shared_bench, work, given.model))
        for mesh in given.meshes.split(","):
            ranks, threads, flags, replicas = MESHES[mesh]
            flags = [*flags, "--training.mixed_precision_param", given.dtype, "--training.local_batch_size", str(given.batch)]
            tokens = replicas * given.batch * TOKENS
            pairs = compare(ours, theirs, given.pairs, ranks, threads, given.steps, flags, tokens)
            target = 10 if given.imitate and given.dtype == "bfloat16" else TARGETS.get((given.model, given.dtype), {}).get(mesh, 1)
            report(f"first loss, {mesh}, s", pairs, 0, "<= 0.1" if mesh == "cube" else "<= 0.25")
            report(f"tokens/s, {mesh}", pairs, 1, f">= {target}")
            report(f"memory, {mesh}, MiB", pairs, 2, "<= 0.5", 2**20)


if __name__ == "__main__":
    main()
