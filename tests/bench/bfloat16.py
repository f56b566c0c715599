#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bfloat16 beside float32 by turns, on the meshes of a processor; prints `name bf16 f32 ratio cpu-ratio target`.

    bfloat16.py TESSERA [--runs 5] [--steps 12] [--meshes one,fsdp2,cube] [--threads 2] [--imitate avx2]

The debug Llama, 8 sequences of 256 tokens a data-parallel rank, random tokens. Tokens a second: from the median step after
the third. The ratio is the median over pairs of runs; cpu-ratio compares the processor seconds of whole runs, which other
programs on the machine change less. --imitate avx2 limits Tessera, oneDNN, LibTorch and MKL to AVX2.
"""
import argparse
import json
import os
import pathlib
import resource
import statistics
import struct
import subprocess
import tempfile

import random

AVX2 = {"TESSERA_CPU": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
ROWS, SEQ, VOCAB = 16, 256, 2000
MESHES = {
    "one": (1, 8, []),
    "fsdp2": (2, 16, ["--parallelism.data_parallel_shard_degree", "2"]),
    "cube": (8, 16, ["--parallelism.pipeline_parallel_degree", "2", "--parallelism.data_parallel_shard_degree", "2",
                     "--parallelism.tensor_parallel_degree", "2"]),
}


def write_tokens(path, steps):
    """A replay data set of random tokens: safetensors with int32 inputs and labels [steps, ROWS, SEQ]."""
    count = steps * ROWS * SEQ
    rng = random.Random(1)
    values = struct.pack(f"<{count}i", *(rng.randrange(VOCAB) for _ in range(count)))
    shape = [steps, ROWS, SEQ]
    header = json.dumps({name: {"dtype": "I32", "shape": shape, "data_offsets": [i * len(values), (i + 1) * len(values)]}
                         for i, name in enumerate(("inputs", "labels"))}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + values + values)


def processor_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(program, work, mesh, dtype, arguments):
    """Tokens a second, and processor seconds."""
    ranks, batch, flags = MESHES[mesh]
    threads = arguments.threads if ranks == 1 else 1
    folder = tempfile.mkdtemp(dir=work)
    train = ["train", "--job.dump_folder", folder, "--model.name", "llama3", "--model.flavor", "debugmodel", "--training.dataset",
             "replay", "--training.dataset_path", work / "tokens.safetensors", "--training.steps", arguments.steps,
             "--training.global_batch_size", batch, "--training.local_batch_size", 8, "--training.seq_len", SEQ,
             "--training.mixed_precision_param", dtype, "--activation_checkpoint.mode", "none", "--lr_scheduler.warmup_steps", 2, *flags]
    command = [program, "launch", "-n", ranks, "--", *train] if ranks > 1 else [program, *train]
    limits = AVX2 if arguments.imitate == "avx2" else {}
    before = processor_seconds()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          env={**os.environ, **limits, "OMP_NUM_THREADS": str(threads)})
    if done.returncode:
        raise SystemExit(f"{command} ended with {done.returncode}: {done.stdout}{done.stderr}")
    lines = [json.loads(line) for line in (pathlib.Path(folder) / "metrics.jsonl").read_text().splitlines()]
    return batch * SEQ / statistics.median(line["step_seconds"] for line in lines[3:]), processor_seconds() - before


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--meshes", default=",".join(MESHES))
    parser.add_argument("--imitate", choices=["avx2"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        write_tokens(work / "tokens.safetensors", arguments.steps)
        print(f"{'name':8} {'bf16':>9} {'f32':>9} {'ratio':>6} {'cpu':>6} target")
        for mesh in arguments.meshes.split(","):
            pairs = [[run(arguments.program, work, mesh, dtype, arguments) for dtype in ("bfloat16", "float32")]
                     for _ in range(arguments.runs)]
            half, single = (statistics.median(pair[side][0] for pair in pairs) for side in (0, 1))
            ratio = statistics.median(a[0] / b[0] for a, b in pairs)
            processor = statistics.median(b[1] / a[1] for a, b in pairs)
            print(f"{mesh:8} {half:9.0f} {single:9.0f} {ratio:6.2f} {processor:6.2f} 0.80", flush=True)


if __name__ == "__main__":
    main()
