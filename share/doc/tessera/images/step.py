#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws step.svg: a training step of one rank, and one microbatch on a stage with three units."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 960, 408
PARTS = [  # of a step: lines of text, kind
    (["read", "train/batch"], "box"),
    (["forward, backward", "parallel/executor"], "blue"),
    (["finish reductions", "parallel/gradient_reducer"], "yellow"),
    (["reduce the loss", "train/loss_sums"], "yellow"),
    (["norm", "parallel/gradient_norm"], "yellow"),
    (["update", "optim/adamw"], "blue"),
    (["report, save", "train/training_loop"], "box"),
]
WIDTHS = [90, 150, 166, 122, 156, 96, 130]
UNIT, SHORT = 80, 64  # of a forward pass and of a gather; a backward pass is twice as long


def step():
    x, y, parts = 8, 34, [drawing.text(8, 20, "A step of one rank", "title left")]
    for (lines, kind), width in zip(PARTS, WIDTHS):
        parts += drawing.box(x, y, width, 46, lines, kind)
        x += width + 6
    return parts


def bar(x, lane, width, words, kind):
    return drawing.box(x, lane, width, 30, [words], kind, ("", ""))


def microbatch():
    """Forward through units 0 to 2, then backward; each gather travels while the unit before it computes."""
    compute, sent = 190, 244
    parts = [drawing.text(8, 150, "One microbatch on a stage with three units; weights are freed after use", "title left"),
             drawing.line((104, 80), (8, 130), kind="line dashed", arrow=False), drawing.line((254, 80), (948, 130), kind="line dashed", arrow=False),
             drawing.text(8, compute + 19, "computation", "small left"), drawing.text(8, sent + 19, "gathers", "small left"),
             drawing.text(8, sent + 55, "reductions", "small left")]
    x = 92
    parts += bar(x, sent, SHORT, "gather 0", "yellow")
    x += SHORT + 4
    for unit in range(3):
        parts += bar(x, compute, UNIT, f"forward {unit}", "blue")
        if unit < 2:
            parts += bar(x, sent, SHORT, f"gather {unit + 1}", "yellow")
        x += UNIT + 4
    parts += bar(x, sent, SHORT, "gather 2", "yellow")
    x += SHORT + 4
    for unit in (2, 1, 0):
        width = 1.6 * UNIT
        parts += bar(x, compute, width, f"backward {unit}", "blue")
        if unit:
            parts += bar(x, sent, SHORT, f"gather {unit - 1}", "yellow")
        parts += bar(x + width + 4, sent + 36, 0.5 * width if not unit else width - 8, f"reduce {unit}", "yellow")
        x += width + 4
    return parts


def notes():
    lines = ["forward u, backward u: the cells of unit u. Between the two, the stage keeps the unit's input and what its recompute policy keeps.",
             "gather u: all-gather of the weights over dp_shard x cp. A sharding policy that keeps them needs no second gather.",
             "reduce u: reduce-scatter of the gradients over dp_shard x cp, then all-reduce over dp_replicate.",
             "A schedule also has actions that send and receive activations and their gradients between stages."]
    return [drawing.text(8, 344 + 18 * at, line, "small left") for at, line in enumerate(lines)]


def picture():
    return drawing.svg(WIDTH, HEIGHT, "One training step", step(), microbatch(), notes())


if __name__ == "__main__":
    (HERE / "step.svg").write_text(picture(), encoding="utf-8")
