#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Step times of jobs on this host, and what `tessera plan` predicts of them; prints `job ranks measured calibrated host`.

    step_prediction.py TESSERA [--rounds 5] [--steps 5] [--jobs debug-float32,29M-bfloat16] [--meshes one,fsdp2,...]
                       [--machine FILE.toml]

Calibrates this node first, on as many ranks as cores, unless --machine names a file that was. Measured is the median over
rounds of what `tessera bench step` finds; all jobs take turns in each round. Errors are those of the calibrated machine and of
`--machine host`. For each job, Kendall's tau tells whether the meshes of 8 ranks are in the right order. Nothing else should
compute: a run beside which others used more than 0.12 cores is repeated, at most once.
"""
import argparse
import itertools
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

from beside_torchtitan import foreign_cores

# 29 M parameters.
WIDE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 2048, "hidden_size": 512,
        "intermediate_size": 1536, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 8,
        "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "max_position_embeddings": 2048, "tie_word_embeddings": False}
P = "--parallelism."
TP, PP, CP = (P + name + "_parallel_degree" for name in ("tensor", "pipeline", "context"))
REPLICATE = P + "data_parallel_replicate_degree"
MICROBATCH = P + "pipeline_parallel_microbatch_size"
# Ranks, flags, data-parallel ranks.
MESHES = {
    "one": (1, [], 1), "fsdp2": (2, [], 2), "tp2": (2, [TP, "2"], 1), "pp2": (2, [PP, "2", MICROBATCH, "1"], 1),
    "fsdp8": (8, [], 8), "ddp8": (8, [REPLICATE, "8", P + "data_parallel_shard_degree", "1"], 8), "hsdp2x4": (8, [REPLICATE, "2"], 8),
    "tp2 fsdp4": (8, [TP, "2"], 4), "tp4 fsdp2": (8, [TP, "4"], 2), "tp8": (8, [TP, "8"], 1), "cp2 fsdp4": (8, [CP, "2"], 4),
    "pp2 fsdp4": (8, [PP, "2", MICROBATCH, "1"], 4), "pp2 tp2 fsdp2": (8, [PP, "2", TP, "2", MICROBATCH, "2"], 2),
    "pp4 fsdp2": (8, [PP, "4", MICROBATCH, "1"], 2), "pp4 tp2": (8, [PP, "4", TP, "2", MICROBATCH, "2"], 1)}
SEQUENCES = 16  # of a step, of all ranks


def flags_of(job, mesh, work):
    model, dtype = job.split("-")
    known = {"debug": ["--model.name", "llama3", "--model.flavor", "debugmodel"], "29M": ["--model.hf_config", work / "config.json"]}
    _, flags, replicas = MESHES[mesh]
    return [*known[model], "--training.mixed_precision_param", dtype, "--training.seq_len", "256", "--activation_checkpoint.mode", "none",
            "--training.local_batch_size", SEQUENCES // replicas, *flags]


def output(command, threads=None):
    env = {**os.environ, "OMP_NUM_THREADS": str(threads)} if threads else None
    return subprocess.run([str(w) for w in command], check=True, stdout=subprocess.PIPE, text=True, env=env).stdout


def measured(tessera, mesh, flags, steps):
    ranks = MESHES[mesh][0]
    start = [tessera, "launch", "-n", ranks, "--"] if ranks > 1 else [tessera]
    threads = max(1, os.cpu_count() // ranks)
    seconds, others = foreign_cores(
        lambda: json.loads(output([*start, "bench", "step", "--json", "--steps", steps, *flags], threads))[0]["seconds"])
    return seconds, others


def predicted(tessera, mesh, flags, machine):
    return json.loads(output([tessera, "plan", "--json", "--gpus", MESHES[mesh][0], "--machine", machine, *flags]))["step_seconds"]


def tau(pairs):
    """Kendall's, of (measured, predicted)."""
    signs = [(a[0] - b[0]) * (a[1] - b[1]) for a, b in itertools.combinations(pairs, 2)]
    return sum((s > 0) - (s < 0) for s in signs) / len(signs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tessera", type=lambda path: pathlib.Path(path).resolve())
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--jobs", default="debug-float32,debug-bfloat16,29M-float32,29M-bfloat16")
    parser.add_argument("--meshes", default=",".join(MESHES))
    parser.add_argument("--machine", type=lambda path: pathlib.Path(path).resolve())
    given = parser.parse_args()
    points = list(itertools.product(given.jobs.split(","), given.meshes.split(",")))
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        (work / "config.json").write_text(json.dumps(WIDE))
        machine = given.machine or work / "host.toml"
        if not given.machine:
            output([given.tessera, "launch", "-n", os.cpu_count(), "--", "plan", "calibrate", "--to", machine])
        times = {point: [] for point in points}
        for _, (job, mesh) in itertools.product(range(given.rounds), points):
            seconds, others = measured(given.tessera, mesh, flags_of(job, mesh, work), given.steps)
            if others > 0.12:
                seconds, others = measured(given.tessera, mesh, flags_of(job, mesh, work), given.steps)
                print(f"# {job}, {mesh}: run again beside foreign programs; now {others:.2f} cores", flush=True)
            times[job, mesh].append(seconds)
        print(f"{'job':16}{'mesh':15}{'ranks':>6}{'measured s':>12}{'calibrated':>12}{'host':>8}")
        for job in given.jobs.split(","):
            seen = {name: [] for name in (machine, "host")}
            for mesh in given.meshes.split(","):
                seconds = statistics.median(times[job, mesh])
                flags = flags_of(job, mesh, work)
                guesses = {name: predicted(given.tessera, mesh, flags, name) for name in seen}
                for name, guess in guesses.items():
                    if MESHES[mesh][0] == 8:
                        seen[name].append((seconds, guess))
                errors = [100 * (guess / seconds - 1) for guess in guesses.values()]
                print(f"{job:16}{mesh:15}{MESHES[mesh][0]:6}{seconds:12.4f}{errors[0]:+11.0f}%{errors[1]:+7.0f}%", flush=True)
            if len(seen["host"]) > 1:
                print(f"{job:16}{'order, tau':15}{8:6}{'':12}{tau(seen[machine]):12.2f}{tau(seen['host']):8.2f}", flush=True)


if __name__ == "__main__":
    main()
