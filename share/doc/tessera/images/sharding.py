#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws sharding.svg: how much of a unit's weights each of four ranks holds, by policy."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 900, 276
RANKS, CELL, BAR = 4, 24, 22
TIMES = ["before forward", "forward", "between", "backward", "after backward"]
POLICIES = [  # policy, and at each of these times how many quarters a rank holds
    ("always", [1, 4, 1, 4, 1]),
    ("k = 2", [1, 4, 2, 4, 2]),
    ("never", [1, 4, 4, 4, 4]),
]


def held(x, y, quarters):
    """Four ranks above each other; the quarters that a rank holds are solid."""
    parts = []
    for rank in range(RANKS):
        first = {1: rank, 2: rank % 2 * 2, 4: 0}[quarters]
        owned = range(first, first + quarters)
        for part in range(RANKS):
            kind = "solid" if part in owned else "box"
            parts.append(drawing.rect(x + part * CELL, y + rank * 11, CELL - 2, 9, kind, 2))
    return parts


def picture():
    parts = [drawing.text(96, 22, "the weights of a unit on ranks 0 to 3, from top to bottom", "small left")]
    column = 160
    for at, time in enumerate(TIMES):
        parts.append(drawing.text(96 + at * column + 2 * CELL, 46, time, "strong"))
    for row, (policy, quarters) in enumerate(POLICIES):
        y = 62 + row * 60
        parts.append(drawing.text(8, y + 26, policy, "code left"))
        for at, count in enumerate(quarters):
            parts += held(96 + at * column, y, count)
    notes = ["A change to all four quarters is an all-gather: over all ranks from one quarter, over k = 2 ranks from two.",
             "What is held after the backward pass of a microbatch is freed at the end of the step."]
    parts += [drawing.text(96, HEIGHT - 24 + 18 * at, note, "small left") for at, note in enumerate(notes)]
    return drawing.svg(WIDTH, HEIGHT, "What each rank holds of a unit's weights, by sharding policy", parts)


if __name__ == "__main__":
    (HERE / "sharding.svg").write_text(picture(), encoding="utf-8")
