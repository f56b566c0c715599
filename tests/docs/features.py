#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The last column of README's table of features: keys and values that do nothing or are refused, from the option table.

features.py --tessera PROGRAM [README.md]   rewrites that column
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

SECTIONS = {  # first cell of a row -> the sections of keys that it covers
    "models": ["model"],
    "parallelism": ["parallelism"],
    "training": ["job", "kernels", "training", "optimizer", "lr_scheduler", "compile", "experimental",
                 "validation", "data"],
    "recompute": ["activation_checkpoint"],
    "low precision": ["quantize"],
    "checkpoints": ["checkpoint"],
    "metrics, profiling": ["metrics", "profiling", "memory_estimation"],
    "faults": ["comm", "fault_tolerance", "debug"],
}


def unavailable(option):
    """`key`, `key = "value"`, or nothing when the key acts on every value."""
    if option["support"] == "acts":
        return []
    if not option["works_with"]:
        return [f"`{option['key']}`"]
    allowed = ["true", "false"] if option["type"] == "boolean" else option["allowed"]
    if not allowed:
        return [f"`{option['key']}` but for {', '.join(option['works_with'])}"]
    quote = "" if option["type"] == "boolean" else '"'
    values = [f"{quote}{value}{quote}" for value in allowed if value not in option["works_with"]]
    return [f"`{option['key']} = {' or '.join(values)}`"]


def cell(sections, options):
    names = []
    for section in sections:
        own = [option for option in options if option["key"].split(".")[0] == section]
        if own and all(option["support"] != "acts" and not option["works_with"] for option in own):
            names.append(f"`[{section}]`")
        else:
            names += [name for option in own for name in unavailable(option)]
    return ", ".join(names)


def with_column(text, options):
    """README with the column as it should be. Throws ValueError when a section of keys has no row."""
    rows = set(SECTIONS)
    lines = text.splitlines(keepends=True)
    for at, line in enumerate(lines):
        cells = line.strip().strip("|").split("|")
        name = cells[0].strip()
        if line.startswith("|") and name in rows and len(cells) == 4:
            cells = [part.strip() for part in cells[:3]] + [cell(SECTIONS[name], options)]
            lines[at] = f"| {' | '.join(cells)} |\n"
            rows.discard(name)
    covered = {section for sections in SECTIONS.values() for section in sections}
    orphans = {option["key"].split(".")[0] for option in options} - covered
    if rows or orphans:
        raise ValueError(f"README's table lacks the rows {sorted(rows)}, features.py the sections {sorted(orphans)}")
    return "".join(lines)


def table(page, facts):
    """A rule of check_docs.py."""
    if page.path.name != "README.md":
        return
    text = page.path.read_text("utf-8")
    try:
        if with_column(text, facts.options) != text:
            yield 1, "the table of features is not up to date; run tests/docs/features.py --tessera build/bin/tessera"
    except ValueError as error:
        yield 1, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    parser.add_argument("readme", nargs="?", type=Path, default=Path(__file__).parents[2] / "README.md")
    args = parser.parse_args()
    keys = subprocess.run([args.tessera, "config", "keys", "--json"], check=True, text=True, stdout=subprocess.PIPE)
    args.readme.write_text(with_column(args.readme.read_text("utf-8"), json.loads(keys.stdout)), encoding="utf-8")


RULES = [table]

if __name__ == "__main__":
    sys.exit(main())
