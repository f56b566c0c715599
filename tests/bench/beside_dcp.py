#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tessera's checkpoints and PyTorch's DCP on the same tensors and folder, by turns; prints `name ours theirs ratio target`.

    beside_dcp.py CHECKPOINT_SPEED [--folder .] [--mib 512] [--turns 5] [--only WORD]

CHECKPOINT_SPEED: the program that -DTESSERA_BUILD_BENCHMARKS=ON builds. Needs torch (the tests' python-torch has it); its
ranks meet over gloo. 16 float32 tensors cut by rows over two ranks, saved durably (FileSystemWriter's default, which calls
fsync); the same loaded by two, four and one ranks; what an asynchronous save holds the caller for; 300 replicated tensors
of 16 numbers. Seconds of the slowest rank, medians over the turns; the first turn of each side does not count.
"""
import argparse
import datetime
import multiprocessing
import os
import pathlib
import shutil
import statistics
import subprocess
import tempfile
import time

MPIRUN = pathlib.Path(__file__).resolve().parent.parent / "mpirun.sh"
TENSORS, COLUMNS = 16, 256


def sharded(ranks, mib):
    import torch
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard
    mesh = init_device_mesh("cpu", (ranks,))
    rows = mib * (1 << 20) // 4 // TENSORS // COLUMNS // ranks
    return {f"layers.{i}.weight": DTensor.from_local(torch.full((rows, COLUMNS), float(i)), mesh, [Shard(0)])
            for i in range(TENSORS)}


def work(rank, ranks, meeting, folder, mib, pipe):
    """One rank of DCP: does what it is told until the pipe closes."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.checkpoint import FileSystemWriter
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks,
                            timeout=datetime.timedelta(seconds=120))
    state = sharded(ranks, mib)
    tiny = {f"s{i}": torch.zeros(16) for i in range(300)}
    while (what := pipe.recv()) is not None:
        if what != "load" and rank == 0:
            shutil.rmtree(folder, ignore_errors=True)
        dist.barrier()
        began, pending = time.perf_counter(), None
        if what == "load":
            dcp.load(state, checkpoint_id=folder)
        elif what == "begin":
            pending = dcp.async_save(state, storage_writer=FileSystemWriter(folder))
        else:
            dcp.save(tiny if what == "tiny" else state, storage_writer=FileSystemWriter(folder))
        pipe.send(time.perf_counter() - began)
        if pending:
            pending.result()
        dist.barrier()
    dist.destroy_process_group()


class Dcp:
    """Ranks that stay, so that their start does not count."""

    def __init__(self, ranks, work_folder, folder, mib):
        context = multiprocessing.get_context("spawn")
        meeting = tempfile.mktemp(dir=work_folder)
        self.pipes, self.ranks = [], []
        for rank in range(ranks):
            mine, theirs = context.Pipe()
            self.pipes.append(mine)
            self.ranks.append(context.Process(target=work, args=(rank, ranks, meeting, folder, mib, theirs)))
            self.ranks[-1].start()

    def seconds(self, what):
        for pipe in self.pipes:
            pipe.send(what)
        return max(pipe.recv() for pipe in self.pipes)

    def close(self):
        for pipe in self.pipes:
            pipe.send(None)
        for rank in self.ranks:
            rank.join()


def ours(program, what, ranks, folder, mib):
    done = subprocess.run([MPIRUN, "300", str(ranks), program, what, folder, str(mib)], check=True, capture_output=True, text=True)
    return float(done.stdout.split()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("."))
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    args = parser.parse_args()
    cases = [("durable save, 2 ranks", "save", 2, "<= 0.67 (1.5x the speed)"), ("load on the same 2 ranks", "load", 2, ""),
             ("load on 4 ranks what 2 saved", "load", 4, "<= 1.25 (0.8x the speed)"),
             ("load on 1 rank what 2 saved", "load", 1, "<= 1.25 (0.8x the speed)"),
             ("what an asynchronous save takes", "begin", 2, "<= 0.35"), ("300 tiny tensors, 2 ranks", "tiny", 2, "<= 0.15")]
    with tempfile.TemporaryDirectory(dir=args.folder.resolve()) as top:
        folders = {what: (os.path.join(top, f"ours-{what}"), os.path.join(top, f"dcp-{what}")) for what in ("save", "begin", "tiny")}
        folders["load"] = folders["save"]
        for name, what, ranks, target in cases:
            if args.only not in name:
                continue
            mine, theirs = [], []
            dcp = Dcp(ranks, top, folders[what][1], args.mib)
            for _ in range(args.turns + 1):
                theirs.append(dcp.seconds(what))
                mine.append(ours(args.program, what, ranks, folders[what][0], args.mib))
            dcp.close()
            a, b = statistics.median(mine[1:]), statistics.median(theirs[1:])
            print(f"{name:<36} {a:8.4f} {b:8.4f} {a / b:6.2f}  {target}", flush=True)


if __name__ == "__main__":
    main()
