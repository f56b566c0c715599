#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws low-precision.svg: the losses of low-precision.csv by recipe, and how far each is from that of bfloat16.

low-precision.py [NAME=METRICS.jsonl...]   takes the losses of other runs first, bfloat16 first; date and processor go to
                                           low-precision.csv by hand
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import curves  # noqa: E402
import drawing  # noqa: E402

DATA = HERE / "low-precision.csv"
NEAR = 20  # steps of a mean


def mean(losses):
    """Of each step and those before it."""
    return [sum(losses[max(0, at + 1 - NEAR):at + 1]) / min(at + 1, NEAR) for at in range(len(losses))]


def picture():
    _, names, losses = curves.read(DATA)
    means = [mean(line) for line in losses]
    difference = [[100 * (own / base - 1) for own, base in zip(line, means[0])] for line in means]
    last = len(means[0])
    steps = [*range(NEAR - 1, last - 1, 3), last - 1]
    percent = lambda share: f"{share:+d} %" if share else "0 %"
    return drawing.svg(960, 400, "Losses of linear layers in low precision beside bfloat16",
                       curves.panel(60, 440, "loss, mean of 20 steps", means, steps, 100, (1, 8, range(1, 9), str)),
                       curves.panel(540, 930, "difference from bfloat16", difference, steps, 100, (-2, 2, (-2, -1, 0, 1, 2), percent)),
                       curves.legend(names))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        curves.take(DATA, sys.argv[1:], 4)
    (HERE / "low-precision.svg").write_text(picture(), encoding="utf-8")
