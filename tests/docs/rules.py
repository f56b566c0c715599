# SPDX-License-Identifier: Apache-2.0
"""Rules on text: each takes a page and the facts, and yields (line, what is wrong)."""

import re
from functools import cache
from pathlib import Path

import markdown

MOST_COLUMNS = 100  # of prose, lists and headings; tables are one line a row
MOST_CODE_COLUMNS = 120  # of fenced code
MOST_WORDS = 25  # of a sentence


def columns(page, facts):
    for block in page.of("prose", "heading", "code"):
        most = MOST_CODE_COLUMNS if block.kind == "code" else MOST_COLUMNS
        for offset, line in enumerate(block.lines):
            if len(line) > most:
                yield block.line + offset, f"{len(line)} columns, at most {most}: {line[:50]}..."


def long_sentences(text):
    for sentence in markdown.sentences(text):
        if len(markdown.words(sentence)) > MOST_WORDS:
            yield f"a sentence of {len(markdown.words(sentence))} words, at most {MOST_WORDS}: {sentence[:70]}..."


def sentences(page, facts):
    for block in page.of("prose"):
        for finding in long_sentences(block.text):
            yield block.line, finding


@cache
def banned():
    """(pattern, what to say) of each line of words.txt."""
    lines = (Path(__file__).parent / "words.txt").read_text("utf-8").splitlines()
    pairs = [line.split(" => ") for line in lines if line and not line.startswith("#")]
    return [(re.compile(rf"\b{pattern}\b", re.I), instead) for pattern, instead in pairs]


def banned_in(text):
    for pattern, instead in banned():
        found = pattern.search(text)
        if found:
            yield f"'{found[0]}': say {instead}"


def words(page, facts):
    for block in page.of("prose", "heading", "row"):
        for finding in banned_in(re.sub(r"`[^`]*`", "", block.text)):
            yield block.line, finding


@cache
def anchors(path):
    return {markdown.anchor_of(block.text) for block in markdown.read(path).of("heading")}


def links(page, facts):
    for block in page.of("prose", "heading", "row"):
        for target in re.findall(r"\]\(([^)\s]+)\)", block.text):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            path = (page.path.parent / file).resolve() if file else page.path
            if not path.exists():
                yield block.line, f"the link {target} leads nowhere"
            elif anchor and anchor not in anchors(path):
                yield block.line, f"{path.name} has no heading with the anchor #{anchor}"


RULES = [columns, sentences, words, links]
