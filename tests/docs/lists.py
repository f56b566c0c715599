# SPDX-License-Identifier: Apache-2.0
"""Pages that list what exists: metrics, environment variables, options of CMake and exit codes, each and no other."""

import re

import markdown

WRITERS = ("src/train", "src/metrics")
LITERAL = re.compile(r'"((?:time|fsdp|comm|moe|validation)/[a-z_]+)"|Column\{"(\w+)"')


def written(facts):
    text = "\n".join(path.read_text("utf-8") for folder in WRITERS for path in (facts.root / folder).rglob("*.[ch]pp"))
    return {first or second for first, second in LITERAL.findall(text)}, text


def listed(page):
    """(line, name) in the first column of the table of names."""
    in_table = False
    for block in page.of("row", "heading", "prose"):
        in_table = block.kind == "row" and (in_table or block.text.startswith("| name"))
        for name in markdown.spans(block.text.split("|")[1]) if in_table else []:
            yield block.line, name


def metrics(page, facts):
    """metrics.md has the metrics named in src/train and src/metrics."""
    if page.path.name != "metrics.md":
        return
    names, source = written(facts)
    table = {name: line for line, name in listed(page)}
    for name in sorted(names - set(table)):
        yield 1, f"the table lacks the metric {name}"
    for name, line in table.items():
        last = name.split("/")[-1]
        if name not in names and f'"{last}"' not in source and f"/{last}" not in source:
            yield line, f"nothing writes the metric {name}"


def environment(page, facts):
    """environment.md, and simulated-gpu.md for the tests' own, have the variables that sources and scripts read; no other."""
    if page.path.name not in ("environment.md", "simulated-gpu.md"):
        return
    rows = [(block.line, name) for block in page.of("row") for name in markdown.spans(block.text.split("|")[1])]
    for line, name in rows:
        if name.startswith("TESSERA_") and name not in facts.environment:
            yield line, f"no source or script reads {name}"
    if page.path.name == "environment.md":
        there = {name for _, name in rows} | set(re.findall(r"^\| `(\w+)`", simulated(facts), re.M))
        for name in sorted(facts.environment.keys() - there):
            yield 1, f"{facts.environment[name]} reads {name}, which is not listed"


def simulated(facts):
    return (facts.root / "share/doc/tessera/simulated-gpu.md").read_text("utf-8")


def build_options(page, facts):
    """INSTALL's table of options has each option of CMake with its default, and no other."""
    if page.path.name != "INSTALL.md":
        return
    rows = {}
    for block in page.of("row"):
        cells = block.text.split("|")
        if markdown.spans(cells[1])[:1] and markdown.spans(cells[1])[0].startswith("TESSERA_"):
            rows[markdown.spans(cells[1])[0]] = block.line, cells[2].strip()
    for name in sorted(facts.build_options.keys() - rows.keys()):
        yield 1, f"the table of options lacks {name}"
    for name, (line, default) in rows.items():
        declared = facts.build_options.get(name)
        if declared is None:
            yield line, f"CMake declares no option {name}"
        elif not declared.startswith("$") and declared.strip('"') != default:
            yield line, f"the default of {name} is {declared}"


def exit_codes(page, facts):
    """exit-codes.md has the codes of ExitCode; those of signals are the shell's."""
    if page.path.name != "exit-codes.md":
        return
    header = (facts.root / "include/tessera/base/error.hpp").read_text("utf-8")
    values = set(re.findall(r"= (\d+)", re.search(r"enum class ExitCode[^{]*{(.*?)}", header, re.S)[1]))
    listed_codes = {code for block in page.of("row") for code in re.findall(r"\d+", block.text.split("|")[1])}
    for code in sorted(values - listed_codes):
        yield 1, f"the exit code {code} is not listed"


COUNTED = {r"(\d+) are supported": "acts", r"(\d+) are refused": "refused", r"(\d+) have no effect": "harmless",
           r"(\d+) keys": None}


def counts_of_keys(page, facts):
    """How many of TorchTitan's keys are supported, refused or have no effect."""
    for block in page.of("prose"):
        if not re.search(r"TorchTitan\S*( v[\d.]+'s)? \d+ keys", block.text):
            continue
        for pattern, support in COUNTED.items():
            true = sum(not option["ours"] and support in (None, option["support"]) for option in facts.options)
            for number in re.findall(pattern, block.text):
                if int(number) != true:
                    yield block.line, f"{number} of TorchTitan's keys: it is {true}"


TABLES = [  # (page, first header, key): the first column has the values of the key, and no other
    ("pipelines.md", "schedule", "parallelism.pipeline_parallel_schedule"),
    ("models.md", "`model.name`", "model.name"),
]


def values(facts, key):
    """What a key may be; without TorchTitan's words for a schedule from a file."""
    option = next(option for option in facts.options if option["key"] == key)
    return {value for value in option["allowed"] or option["works_with"] if not value.startswith("PipelineSchedule")}


def first_column(page, header):
    """{name: line} below that header."""
    names, in_table = {}, False
    for block in page.of("row", "heading", "prose"):
        cell = block.text.split("|")[1].strip() if block.kind == "row" else ""
        if in_table and cell.strip("-"):
            names[cell.strip("`")] = block.line
        in_table = block.kind == "row" and (in_table or cell == header)
    return names


def tables_of_values(page, facts):
    """A table of what a key may be is whole."""
    for name, header, key in TABLES:
        if page.path.name != name:
            continue
        known, rows = values(facts, key), first_column(page, header)
        for value in sorted(known - rows.keys()):
            yield 1, f"the table lacks {value}, which {key} may be"
        for value in sorted(rows.keys() - known):
            yield rows[value], f"{key} cannot be {value}"


RULES = [metrics, environment, build_options, exit_codes, counts_of_keys, tables_of_values]
