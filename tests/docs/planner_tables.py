#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables that the planner prints: README's of what fits where, the checklist of keys in performance.md, and planner.md's of
meshes compared with FSDP alone.

planner_tables.py --tessera PROGRAM   rewrites them
"""

import argparse
import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"README.md": "README.md", "performance.md": "share/doc/tessera/performance.md",
         "planner.md": "share/doc/tessera/planner.md"}
BEGIN, END = "<!-- tessera plan -->\n\n", "\n<!-- tessera plan: end -->"

MODELS = [("Llama 3.2 1B", "llama3", "1B"), ("Llama 3.1 8B", "llama3", "8B"), ("Llama 3.1 70B", "llama3", "70B"),
          ("Llama 3.1 405B", "llama3", "405B"), ("DeepSeek-V3 671B", "deepseek_v3", "671B")]
GPUS = [8, 64, 512]

MODE, SCHEDULE = "activation_checkpoint.mode", "parallelism.pipeline_parallel_schedule"
OPEN = {"parallelism.data_parallel_shard_degree": -1}
JOBS = {  # name -> recipe, GPUs, and what differs from the recipe
    "8B on 8": ("llama3_8b_fsdp8", 8, {}),
    "8B on 512": ("llama3_8b", 512, {"training.global_batch_size": 512, MODE: "none"}),
    "70B on 256": ("llama3_70b", 256, {}),
    "405B on 512": ("llama3_405b_8x8x8", 512, {}),
}
LINES = [  # (job, key, from, to, keys of both)
    ("8B on 8", "parallelism.tensor_parallel_degree", 8, 1, OPEN),
    ("8B on 8", "model.converters", "", "quantize.linear.float8", {}),
    ("405B on 512", "training.local_batch_size", 8, 32, {"training.global_batch_size": -1}),
    ("8B on 8", MODE, "full", "none", {}),
    ("70B on 256", "parallelism.tensor_parallel_degree", 16, 8, {}),
    ("70B on 256", MODE, "full", "selective", {"activation_checkpoint.selective_ac_option": "op"}),
    ("70B on 256", "parallelism.tensor_parallel_degree", 8, 4, {"training.local_batch_size": 2}),
    ("405B on 512", SCHEDULE, "1F1B", "Interleaved1F1B", {}),
    ("8B on 8", "parallelism.context_parallel_degree", 2, 1, OPEN),
    ("405B on 512", "parallelism.pipeline_parallel_microbatch_size", 2, 1, {}),
    ("8B on 8", "parallelism.fsdp_reshard_after_forward", "always", "never", {}),
    ("70B on 256", "parallelism.enable_async_tensor_parallel", "false", "true", {}),
    ("405B on 512", "parallelism.fsdp_gradient_accumulation", "sharded", "unsharded", {}),
    ("405B on 512", "parallelism.pipeline_parallel_layers_per_stage", 8, 4, {}),
    ("8B on 8", "activation_checkpoint.selective_ac_option", 2, "op", {MODE: "selective"}),
    ("70B on 256", SCHEDULE, "Interleaved1F1B", "InterleavedZeroBubble",
     {"parallelism.pipeline_parallel_degree": 4, "training.local_batch_size": 16}),
    ("8B on 8", "training.local_batch_size", 1, 2, {MODE: "full"}),
    ("8B on 512", "parallelism.data_parallel_replicate_degree", 1, 8, {}),
    ("70B on 256", "parallelism.disable_loss_parallel", "true", "false", {}),
    ("8B on 8", "training.fused_linear_cross_entropy", "never", "always", {}),
]


def plan(tessera, *words):
    done = subprocess.run([str(tessera), "plan", "--json", *words], text=True, capture_output=True, timeout=120, check=False)
    if done.returncode != 0:
        raise ValueError(f"tessera plan {' '.join(words)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def mesh_of(option, gpus):
    mesh = option["mesh"]
    shard = gpus // (mesh["pp"] * mesh["tp"] * mesh["cp"] * mesh["dp_replicate"])
    degrees = [("PP", mesh["pp"]), ("DP", mesh["dp_replicate"]), ("FSDP", shard), ("TP", mesh["tp"]), ("CP", mesh["cp"]),
               ("EP", mesh["ep"])]
    return " x ".join(f"{name} {degree}" for name, degree in degrees if degree > 1)


def fit_row(tessera, name, family, flavor, gpus):
    words = ["--model.name", family, "--model.flavor", flavor, "--training.seq_len", "8192", "--training.local_batch_size",
             "1", "--training.global_batch_size", "512", "--gpus", str(gpus), "--search"]
    found = plan(tessera, *words)["search"]
    if found["best"]:
        best = found["best"][0]
        gib = best["memory_gib"]
        return f"| {name} | {gpus} | {mesh_of(best, gpus)} | {gib:.0f} | yes |\n"
    remedy = found.get("smallest_change")
    if not remedy:
        words = "no"
    elif remedy["gpus"] == gpus:  # the first change is that of types
        words = f"only with `{remedy['changes'][0]}`"
    else:
        words = f"no: from {remedy['gpus']} GPUs on"
    return f"| {name} | {gpus} | none | | {words} |\n"


def fits(tessera):
    """Which mesh is fastest, and what it takes."""
    rows = [(*model, gpus) for model in MODELS for gpus in GPUS]
    with ThreadPoolExecutor(2) as pool:
        lines = pool.map(lambda row: fit_row(tessera, *row), rows)
    return "| model | GPUs | mesh | GiB per GPU | fits |\n|---|---|---|---|---|\n" + "".join(lines)


def priced(tessera, job, keys):
    recipe, gpus, own = JOBS[job]
    flags = [word for key, value in {**own, **keys}.items() for word in (f"--{key}", str(value))]
    found = plan(tessera, str(ROOT / f"share/tessera/recipes/{recipe}.toml"), "--gpus", str(gpus), *flags)
    if not found["fits"]:
        raise ValueError(f"{job} does not fit with {keys}")
    return found["tokens_per_second_per_gpu"], found["memory_gib"]


def gain(tessera, line):
    """Of tokens/s, in percent, and of GiB a GPU."""
    job, key, old, new, others = line
    before, after = (priced(tessera, job, {**others, key: value}) for value in (old, new))
    return 100 * (after[0] / before[0] - 1), after[1] - before[1]


def checklist(tessera):
    """What each key wins in a job, the most first."""
    with ThreadPoolExecutor(2) as pool:
        gains = list(pool.map(lambda line: gain(tessera, line), LINES))
    rows = ["| tokens/s | GiB per GPU | key | from | to | job | both with |\n|---|---|---|---|---|---|---|\n"]
    for (speed, gib), (job, key, old, new, others) in sorted(zip(gains, LINES), key=lambda pair: -pair[0][0]):
        both = ", ".join(f"`{other.split('.')[1]} = {value}`" for other, value in others.items())
        rows.append(f"| {speed:+.1f} % | {gib:+.1f} | `{key}` | `{old or 'none'}` | `{new}` | {job} | {both} |\n")
    return "".join(rows)


MESHES = [  # what, recipe, GPUs, and what differs from the recipe
    ("8B", "llama3_8b", 512, {"training.global_batch_size": 512}),
    ("8B, TP 8", "llama3_8b", 512, {"parallelism.tensor_parallel_degree": 8, "training.global_batch_size": 512}),
    ("70B", "llama3_70b", 64, {}),
    ("70B", "llama3_70b", 512, {"training.global_batch_size": 512}),
    ("70B, FSDP 32, PP 16", "llama3_70b", 512, {
        "training.global_batch_size": 512, "parallelism.tensor_parallel_degree": 1, "parallelism.pipeline_parallel_degree": 16,
        "parallelism.data_parallel_shard_degree": 32, SCHEDULE: "Interleaved1F1B"}),
    ("405B, 8 x 8 x 8", "llama3_405b_8x8x8", 512, {"training.global_batch_size": 512}),
]


def against_fsdp(tessera):
    """Meshes compared with FSDP alone, and with the same mesh on fewer GPUs."""
    lines = ["| job | GPUs | tokens/s a GPU | plain FSDP | speed | GiB | plain FSDP | memory | speed as on |\n"
             "|---|---|---|---|---|---|---|---|---|\n"]
    for what, recipe, gpus, keys in MESHES:
        flags = [word for key, value in keys.items() for word in (f"--{key}", str(value))]
        own = plan(tessera, str(ROOT / f"share/tessera/recipes/{recipe}.toml"), "--gpus", str(gpus), *flags)
        plain, few = own["plain_fsdp"], own.get("scaling")
        scales = f"{few['gpus']}: {100 * few['efficiency']:.0f} %" if few else "no fewer"
        speed, memory = (own[key] / plain[key] - 1 for key in ("tokens_per_second_per_gpu", "memory_gib"))
        lines.append(f"| {what} | {gpus} | {own['tokens_per_second_per_gpu']:,.0f} | {plain['tokens_per_second_per_gpu']:,.0f} | "
                     f"{100 * speed:+.0f} % | {own['memory_gib']:.0f} | {plain['memory_gib']:.0f}{'' if plain['fits'] else ', too many'} | "
                     f"{100 * memory:+.0f} % | {scales} |\n")
    return "".join(lines)


TABLES = {"README.md": fits, "performance.md": checklist, "planner.md": against_fsdp}


@lru_cache(maxsize=None)
def table_of(name, tessera):
    return TABLES[name](tessera)


def with_table(text, table):
    before, rest = text.split(BEGIN, 1)
    return before + BEGIN + table + END + rest.split(END, 1)[1]


def up_to_date(page, facts):
    """A rule of check_docs.py."""
    name = page.path.name
    if name not in TABLES:
        return
    text = page.path.read_text("utf-8")
    if BEGIN not in text or END not in text:
        yield 1, "the table that the planner prints is missing"
    elif with_table(text, table_of(name, facts.tessera)) != text:
        yield 1, "the planner prints another table; run tests/docs/planner_tables.py --tessera build/bin/tessera"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    tessera = parser.parse_args().tessera
    for name, place in PAGES.items():
        path = ROOT / place
        path.write_text(with_table(path.read_text("utf-8"), table_of(name, tessera)), encoding="utf-8")


RULES = [up_to_date]

if __name__ == "__main__":
    main()
