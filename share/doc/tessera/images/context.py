#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws context.svg: which rank computes which blocks of attention scores, for four context-parallel ranks."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 760, 352
RANKS, CELL = 4, 26
KINDS = ["blue", "yellow", "green", "red"]


def owner(chunk, balanced):
    """The rank of one of eight chunks of the sequence."""
    return min(chunk, 2 * RANKS - 1 - chunk) if balanced else chunk // 2


def triangle(x, balanced, title):
    y, blocks = 62, [0] * RANKS
    parts = [drawing.text(x + 4 * CELL, 24, title, "title"), drawing.text(x + 4 * CELL, 48, "keys", "small")]
    for query in range(2 * RANKS):
        rank = owner(query, balanced)
        parts.append(drawing.text(x - 12, y + query * CELL + 17, str(rank), "small"))
        for key in range(query + 1):
            parts.append(drawing.rect(x + key * CELL, y + query * CELL, CELL - 3, CELL - 3, KINDS[rank], 3))
            blocks[rank] += 1
    for rank, count in enumerate(blocks):
        left = x + rank * 60 - 14
        parts += [drawing.rect(left, y + 8 * CELL + 12, 14, 14, KINDS[rank], 3),
                  drawing.text(left + 20, y + 8 * CELL + 24, f"{count}", "left")]
    return parts


def picture():
    return drawing.svg(WIDTH, HEIGHT, "Blocks of attention scores of each context-parallel rank",
                       triangle(100, True, "headtail"), triangle(470, False, "none"),
                       drawing.text(8, 324, "Rows: eight chunks of queries, with the rank that holds them.", "small left"),
                       drawing.text(8, 342, "Below: the number of blocks of scores that each rank computes under a causal mask.", "small left"))


if __name__ == "__main__":
    (HERE / "context.svg").write_text(picture(), encoding="utf-8")
