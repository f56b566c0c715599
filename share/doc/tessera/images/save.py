#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws save.svg: the phases of a save, and what a crash in each leaves behind."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 960, 330
PHASES = [  # phase, what happens, who does it, kind
    ("prepare", ["agree on the slices", "of every tensor; make", "step-N.partial-ID"], "all ranks together", "yellow"),
    ("copy", ["copy this rank's", "slices; training", "continues"], "each rank", "blue"),
    ("write", ["shard file: values,", "tables, checksums;", "fsync"], "each rank, on a thread", "blue"),
    ("collect", ["the names, sizes and", "checksums of files", "reach rank 0"], "all ranks together", "yellow"),
    ("commit", ["manifest.json; fsync;", "rename to step-N;", "fsync the folder"], "rank 0, on a thread", "green"),
    ("tidy", ["LATEST, index.h5;", "remove older", "checkpoints"], "rank 0, on a thread", "box"),
]
LEFT, BOX, GAP = 8, 144, 16
TOP, BOTTOM = 36, 128


def phases():
    parts = []
    for at, (name, lines, who, kind) in enumerate(PHASES):
        x = LEFT + at * (BOX + GAP)
        parts += drawing.box(x, TOP, BOX, BOTTOM - TOP, [name, *lines], kind)
        parts.append(drawing.text(x + BOX / 2, BOTTOM + 20, who, "small"))
        if at:
            parts.append(drawing.line((x - GAP + 1, (TOP + BOTTOM) / 2), (x - 1, (TOP + BOTTOM) / 2)))
    return parts


def crash():
    """The commit point is the rename, in the middle of the box of the phase."""
    x = LEFT + 4 * (BOX + GAP) + BOX / 2
    y = 206
    return [drawing.line((x, BOTTOM + 30), (x, 300), kind="line dashed", arrow=False),
            drawing.text(x, 316, "commit point: the rename", "strong"),
            drawing.text(LEFT, y - 14, "After a crash, the latest checkpoint is", "title left"),
            drawing.rect(LEFT, y, x - LEFT - 6, 34, "box"),
            drawing.text((LEFT + x) / 2, y + 22, "the previous one; the next save removes the partial folder"),
            drawing.rect(x + 6, y, WIDTH - x - 14, 34, "green"),
            drawing.text((x + WIDTH) / 2, y + 22, "this one, complete"),
            drawing.text(LEFT, y + 62, "With checkpoint.async_mode, training continues after the copy; the next optimizer step waits for it.", "small left"),
            drawing.text(LEFT, y + 80, "Collective phases run between two steps. A phase that fails on one rank fails on all.", "small left")]


def picture():
    return drawing.svg(WIDTH, HEIGHT, "The phases of a save and its commit point",
                       drawing.text(8, 20, "A save", "title left"), phases(), crash())


if __name__ == "__main__":
    (HERE / "save.svg").write_text(picture(), encoding="utf-8")
