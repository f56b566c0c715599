# SPDX-License-Identifier: Apache-2.0
"""Pages that list what the program has: metrics, environment variables and exit codes, each and no other."""

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
    """environment.md has the variables that the program reads; that others exist is checked for every page."""
    if page.path.name != "environment.md":
        return
    texts = (facts.root / name for name in facts.tracked if name.startswith(("src/", "jobs/")))
    source = "\n".join(path.read_text("utf-8") for path in texts)
    read = set(re.findall(r"[\"{]((?:TESSERA|SWEEP)_[A-Z_]+)[\":]", source))
    for name in sorted(read - {span for block in page.of("row", "prose") for span in markdown.spans(block.text)}):
        yield 1, f"the program reads {name}, which is not listed"


def exit_codes(page, facts):
    """exit-codes.md has the codes of ExitCode; those of signals are the shell's."""
    if page.path.name != "exit-codes.md":
        return
    header = (facts.root / "include/tessera/base/error.hpp").read_text("utf-8")
    values = set(re.findall(r"= (\d+)", re.search(r"enum class ExitCode[^{]*{(.*?)}", header, re.S)[1]))
    listed_codes = {code for block in page.of("row") for code in re.findall(r"\d+", block.text.split("|")[1])}
    for code in sorted(values - listed_codes):
        yield 1, f"the exit code {code} is not listed"


RULES = [metrics, environment, exit_codes]
