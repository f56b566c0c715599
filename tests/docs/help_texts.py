# SPDX-License-Identifier: Apache-2.0
"""Rules on the program's own texts: --help, and string literals of the sources."""

import re

import rules


def named_helps(facts):
    for command, text in facts.helps.items():
        yield " ".join(("tessera", *command, "--help")), text
    yield "./bootstrap --help", facts.bootstrap_help


def helps(facts):
    """(name, what is wrong) for the help text of each command."""
    for name, text in named_helps(facts):
        for line in text.splitlines():
            if len(line) > rules.MOST_COLUMNS:
                yield name, f"{len(line)} columns, at most {rules.MOST_COLUMNS}: {line.strip()[:50]}..."
        for paragraph in re.split(r"\n\s*\n|\n(?=  \S)", text):
            for finding in rules.long_sentences(" ".join(paragraph.split())):
                yield name, finding
        for finding in rules.banned_in(text):
            yield name, finding


LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')


def literals_of(text):
    """(line, literal) of each string in C++, adjacent ones joined; comments and #include are skipped."""
    joined, start = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.strip()
        if code.startswith(("//", "#include", "///")):
            continue
        found = LITERAL.findall(re.sub(r"\s//.*", "", code))
        if not (code.startswith('"') and joined):
            if joined:
                yield start, joined
            joined, start = "", number
        joined += "".join(found[:1]) if code.startswith('"') else ""
        if not code.startswith('"'):
            for literal in found[:-1]:
                yield number, literal
            joined = found[-1] if found and not code.endswith(";") else ""
            if found and code.endswith(";"):
                yield number, found[-1]
    if joined:
        yield start, joined


def scripts(facts):
    """(file:line, what is wrong) for the comments and messages of job scripts, recipes, sweeps and bootstrap."""
    for name in sorted(facts.tracked):
        if re.match(r"jobs/|share/tessera/(recipes|sweeps)/", name):
            for number, line in enumerate((facts.root / name).read_text("utf-8").splitlines(), 1):
                for finding in rules.banned_in(line):
                    yield f"{name}:{number}", finding


def messages(facts):
    """(file:line, what is wrong) for each string of the sources with a word that users should not read."""
    for name in sorted(facts.tracked):
        if name.startswith(("src/", "mesh/", "checkpoint/", "include/")) and name.endswith((".cpp", ".hpp", ".cu")):
            for line, literal in literals_of((facts.root / name).read_text("utf-8")):
                for finding in rules.banned_in(literal) if " " in literal else ():
                    yield f"{name}:{line}", finding
