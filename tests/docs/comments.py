# SPDX-License-Identifier: Apache-2.0
"""Comments of C++ sources do not have the phrases of words.txt either."""

import re

import outline
import rules

SOURCES = ("src/", "include/", "mesh/", "checkpoint/")
CODE = re.compile(r"`[^`]*`")


def comments_of(source):
    """(line, text) of each comment; comments on lines that follow each other are one."""
    last, first, text = 0, 0, ""
    for found in outline.TEXT.finditer(source):
        if not found[0].startswith("//"):
            continue
        line = source.count("\n", 0, found.start()) + 1
        if text and line > last + 1:
            yield first, text
            text = ""
        first = first if text else line
        text += " " + re.sub(r"^//+<? ?", "", found[0])
        last = line
    if text:
        yield first, text


def findings_in(name, source):
    for line, text in comments_of(source):
        for finding in rules.banned_in(CODE.sub("", text)):
            yield f"{name}:{line}: {finding}"


def findings(facts):
    for name in facts.own:
        if name.startswith(SOURCES) and name.endswith((".cpp", ".hpp", ".cu", ".cuh", ".inl", ".inc")):
            yield from findings_in(name, (facts.root / name).read_text("utf-8"))
