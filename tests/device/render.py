#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of gpu-results.md:  render.py --document FILE [--keep FOLDER] [RESULTS...]

RESULTS are files of first_hour.sh. With --keep, FOLDER has a file for each kind of GPU, which gets them, and the tables show
all files of FOLDER: a column for each kind. The text around the tables is kept, if FILE has the marks that bound them. Of
several results of a measurement the last one stands; what never ran reads "not run yet".
"""
import argparse
import json
import re
from pathlib import Path

from record import catalogue, lines

BEGIN, END = "<!-- tables: written by tests/device/render.py -->", "<!-- end of the tables -->"
PARTS = {"a": "Kernels", "b": "NCCL", "c": "Gradients", "d": "The life of a run", "e": "Speed", "f": "Bandwidth",
         "g": "Steps as graphs"}
TEXT = f"""# Results on GPUs

{BEGIN}
{END}
"""


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def result_of(line):
    if line is None:
        return "not run yet"
    if line["outcome"] == "impossible":
        return f"not possible: {cell(line['reason'])}"
    if line["outcome"] == "passed":
        return f"passed, {line['seconds']} s"
    told = " / ".join(line.get("said", [])[:2])
    return f"**{line['outcome']}**, exit code {line['exit']}, {line['seconds']} s: {cell(told[:300])}"


def number(value):
    return f"{value:.3e}" if 0 < abs(value) < 1e-3 else f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


class Gpu:
    """What was measured on a kind of GPU."""

    def __init__(self, name):
        self.name = name
        self.facts = {}
        self.found = {}  # of each measurement the last line

    def file_name(self):
        """As h200.jsonl of NVIDIA H200; each name has its own."""
        words = [word for word in re.findall(r"[a-z0-9]+", self.name.lower()) if word != "nvidia"]
        return ("-".join(words) or "gpu") + ".jsonl"

    def write(self, folder):
        kept = [self.facts] if self.facts else []
        kept += [self.found[name] for name in catalogue() if name in self.found]
        (folder / self.file_name()).write_text("".join(json.dumps(line) + "\n" for line in kept))


def gpus_of(files):
    """Each line belongs to the machine whose facts came last."""
    gpus = {}
    for file in files:
        name = ""
        for line in lines(file):
            if "name" not in line:
                name = line.get("gpu", "")
            gpu = gpus.setdefault(name, Gpu(name))
            if "name" in line:
                gpu.found[line["name"]] = line
            elif line["device"] == "cuda":
                gpu.facts = line
    return list(gpus.values()) or [Gpu("")]


def row(*cells):
    return "| " + " | ".join(cells) + " |"


def header(first, gpus, *more):
    names = [gpu.name or "result" for gpu in gpus]
    return [row(first, *names, *more), "|" + "---|" * (1 + len(names) + len(more))]


def machines(gpus):
    names = {"gpu": "GPU", "nccl": "NCCL", "torch": "PyTorch", "tessera": "Tessera", "sanitizer": "compute-sanitizer"}
    keys = list(dict.fromkeys(key for gpu in gpus for key in gpu.facts if key not in ("device", "gpu")))
    rows = [row(names.get(key, key), *(cell(gpu.facts.get(key, "")) for gpu in gpus)) for key in keys]
    return ["", *header("machine", gpus), *rows] if rows else []


def table(part, gpus):
    return header("measurement", gpus) + [
        row(text, *(result_of(gpu.found.get(name)) for gpu in gpus)) for name, (of, text) in catalogue().items() if of == part]


def values(part, gpus):
    rows = []
    for name, (of, _) in catalogue().items():
        of_gpus = [gpu.found.get(name, {}).get("values", {}) for gpu in gpus] if of == part else []
        units = {what: unit for found in of_gpus for what, (_, unit) in found.items()}
        for what, unit in units.items():
            numbers = (number(found[what][0]) if what in found else "" for found in of_gpus)
            rows.append(row(f"`{name}`: {cell(what)}", *numbers, cell(unit)))
    return ["", *header("value", gpus, "unit"), *rows] if rows else []


def when(line):
    """The date, and the commit where the line has one."""
    commit = re.search(r"\(([\w-]+)", line.get("tessera", ""))
    return line.get("date", "") + (f", {commit[1]}" if commit else "")


def commands(gpus):
    """Of life.sh and speed.sh without the program, their first argument."""
    rows = []
    for name in catalogue():
        ran = [gpu.found.get(name, {}) for gpu in gpus]
        command = next((line["command"] for line in ran if line.get("command")), None)
        if command:
            rows.append(row(name, *map(when, ran), f"`{cell(command.replace('.sh tessera ', '.sh '))}`"))
    return ["", "## Commands", "", *header("measurement", gpus, "command"), *rows] if rows else []


def tables(gpus):
    text = machines(gpus)
    for part, title in PARTS.items():
        text += ["", f"## {title}", ""] + table(part, gpus) + values(part, gpus)
    return "\n".join(text + commands(gpus)) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--document", type=Path, required=True)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("results", nargs="*")
    wanted = parser.parse_args()
    kept = sorted(wanted.keep.glob("*.jsonl"), reverse=True) if wanted.keep else []
    gpus = gpus_of([*kept, *wanted.results])
    if wanted.keep:
        wanted.keep.mkdir(parents=True, exist_ok=True)
        for gpu in gpus:
            gpu.write(wanted.keep)
    text = wanted.document.read_text() if wanted.document.exists() else TEXT
    if BEGIN not in text or END not in text:
        text = TEXT
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted.document.write_text(f"{before}{BEGIN}\n{tables(gpus)}\n{END}{after}")


if __name__ == "__main__":
    main()
