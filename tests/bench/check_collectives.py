#!/usr/bin/env python3
"""What debug.check_collectives costs: the median step with it beside the one without, by turns.

    check_collectives.py TESSERA [--steps 12] [--rounds 5]

The debug Llama in float32 on random tokens, on 2 and 4 ranks of pipeline and tensor parallelism, where calls are many and small.
"""
import argparse
import pathlib
import statistics
import tempfile

from sharding_policies import run, write_replay

MESHES = {"tp2": (2, "--parallelism.tensor_parallel_degree=2"), "dp2": (2, "--parallelism.data_parallel_shard_degree=2"),
          "pp2 tp2": (4, "--parallelism.pipeline_parallel_degree=2", "--parallelism.tensor_parallel_degree=2")}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    print("mesh      off (ms)   on (ms)   ratio (median of the rounds)   target")
    for mesh, (ranks, *flags) in MESHES.items():
        seen = {"": [], "--debug.check_collectives": []}
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            write_replay(work / "replay.safetensors", args.steps, 4 * ranks)
            for turn in range(args.rounds):
                for check, steps in seen.items():
                    metrics = run(args.program, work / f"{turn}{check}", work / "replay.safetensors", ranks, args.steps,
                                  ["default", *flags, *([check] if check else [])])
                    steps.append(statistics.median(step["step_seconds"] for step in metrics[2:]))
        off, on = seen.values()
        ratio = statistics.median(b / a for a, b in zip(off, on))
        print(f"{mesh:8} {1e3 * statistics.median(off):9.0f} {1e3 * statistics.median(on):9.0f} {ratio:9.3f}   <= 1.02")


if __name__ == "__main__":
    main()
