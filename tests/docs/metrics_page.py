"""metrics.md lists the metrics that the program writes: those named in src/train and src/metrics, and no other."""

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


RULES = [metrics]
