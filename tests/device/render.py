#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of gpu-results.md from results.jsonl:  render.py --document FILE [RESULTS...]

The text around the tables is kept, if FILE has the marks that bound them. Of several results of a measurement the last one
stands; what never ran reads "not run yet".
"""
import argparse
import json
from pathlib import Path

from record import catalogue, latest, lines

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


def table(part, found):
    rows = ["| measurement | result |", "|---|---|"]
    for name, (of, text) in catalogue().items():
        if of == part:
            rows.append(f"| {text} | {result_of(found.get(name))} |")
    return rows


def values(part, found):
    rows = []
    for name, (of, _) in catalogue().items():
        line = found.get(name)
        if of != part or not line or not line.get("values"):
            continue
        rows += [f"| `{name}`: {cell(what)} | {number(value)} | {cell(unit)} |" for what, (value, unit) in line["values"].items()]
    return ["", "| value | | unit |", "|---|---|---|"] + rows if rows else []


def commands(found):
    """Of life.sh and speed.sh without the program, their first argument."""
    rows = [f"| {name} | {found[name]['date']} | `{cell(found[name]['command'].replace('.sh tessera ', '.sh '))}` |"
            for name in catalogue() if found.get(name, {}).get("command")]
    return ["", "## Commands", "", "| measurement | date | command |", "|---|---|---|"] + rows if rows else []


def machine(files):
    """Of the last call on a real GPU."""
    facts = [line for file in files for line in lines(file) if "name" not in line and line["device"] == "cuda"]
    if not facts:
        return []
    names = {"gpu": "GPU", "nccl": "NCCL", "torch": "PyTorch", "tessera": "Tessera", "sanitizer": "compute-sanitizer"}
    rows = [f"| {names.get(key, key)} | {cell(value)} |" for key, value in facts[-1].items() if key != "device"]
    return ["", "| machine | |", "|---|---|"] + rows


def tables(files):
    found = {}
    for file in files:
        found |= latest(file)
    text = machine(files)
    for part, title in PARTS.items():
        text += ["", f"## {title}", ""] + table(part, found) + values(part, found)
    return "\n".join(text + commands(found)) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--document", type=Path, required=True)
    parser.add_argument("results", nargs="*")
    wanted = parser.parse_args()
    text = wanted.document.read_text() if wanted.document.exists() else TEXT
    if BEGIN not in text or END not in text:
        text = TEXT
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted.document.write_text(f"{before}{BEGIN}\n{tables(wanted.results)}\n{END}{after}")


if __name__ == "__main__":
    main()
