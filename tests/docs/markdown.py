# SPDX-License-Identifier: Apache-2.0
"""Reads Markdown, roff and help texts into blocks, so that each rule sees only the text that it is about."""

import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Block:
    """A paragraph, list item, heading, table row or fenced code, with the line on which it starts."""

    kind: str  # "prose", "heading", "row", "code", "comment"
    line: int
    lines: list = field(default_factory=list)
    language: str = ""
    comment: str = ""  # of code: the HTML comment directly above it

    @property
    def text(self):
        return " ".join(line.strip() for line in self.lines)


@dataclass
class Page:
    path: Path
    blocks: list

    def of(self, *kinds):
        return [block for block in self.blocks if block.kind in kinds]


def kind_of(line):
    if line.startswith("#"):
        return "heading"
    if line.lstrip().startswith("|"):
        return "row"
    return "comment" if line.startswith("<!--") else "prose"


def starts_item(line):
    return re.match(r"\s*([-*]|\d+\.) ", line) is not None


def read_markdown(path):
    blocks, code, fresh = [], None, True
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            if code:
                code, fresh = None, True
                continue
            above = blocks[-1].text if blocks and blocks[-1].kind == "comment" else ""
            code = Block("code", number, [], line.strip().strip("`").strip(), above)
            blocks.append(code)
        elif code:
            code.lines.append(line)
        elif not line.strip():
            fresh = True
        else:
            kind = kind_of(line)
            joins = not fresh and blocks and kind == blocks[-1].kind == "prose" and not starts_item(line)
            if joins:
                blocks[-1].lines.append(line)
            else:
                blocks.append(Block(kind, number, [line]))
            fresh = kind != "prose"
    return Page(path, blocks)


def plain_roff(line):
    line = re.sub(r"\\f[BIRP]", "", line).replace("\\-", "-").replace("\\e", "\\").replace("\\&", "")
    return line.replace('"', "")


def roff_words(line):
    """The text of a line of roff: macros that set a font keep their words, others have none."""
    macro = re.match(r"\.(B|I|BI|BR|RB|IR|RI)\s+(.*)", line)
    if macro:
        parts = re.findall(r'"[^"]*"|\S+', macro[2])
        return plain_roff(("" if len(macro[1]) == 2 else " ").join(part.strip('"') for part in parts))
    return "" if line.startswith(".") else plain_roff(line)


def read_roff(path):
    blocks, fresh, example, tag = [], True, False, False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith((".nf", ".TS")):
            example = True
            blocks.append(Block("code" if line.startswith(".nf") else "row", number, [], "roff"))
        elif line.startswith((".fi", ".TE")):
            example, fresh = False, True
        elif example:
            blocks[-1].lines.append(plain_roff(line))
        elif line.startswith((".SH", ".TP", ".TH", ".RS", ".RE", ".br", ".PP")) or line.startswith("'"):
            fresh, tag = True, line.startswith(".TP")
        elif tag:  # what the paragraph behind it is about
            blocks.append(Block("row", number, [roff_words(line)]))
            tag = False
        elif fresh or not blocks:
            blocks.append(Block("prose", number, [roff_words(line)]))
            fresh = False
        else:
            blocks[-1].lines.append(roff_words(line))
    return Page(path, blocks)


def read(path):
    return read_roff(path) if ".1" in path.suffixes else read_markdown(path)


def spans(text):
    """What stands between backticks."""
    return re.findall(r"`([^`]+)`", text)


def anchor_of(heading):
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", lambda m: m[1] or "", heading.lstrip("#").strip())
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def sentences(text):
    """Prose without links' targets and with each code span as one word, cut at ends of sentences."""
    text = re.sub(r"\]\([^)]*\)", "]", text)
    text = re.sub(r"`[^`]*`", "CODE", text)
    text = re.sub(r"^\s*([-*]|\d+\.) ", "", text)
    text = re.sub(r"\b(e\.g|i\.e|etc|vs|cf)\.", r"\1", text)
    return [part for part in re.split(r"(?<=[.!?])[)*\"]*\s+", text) if part.strip()]


def words(sentence):
    return [word for word in sentence.split() if re.search(r"\w", word)]
