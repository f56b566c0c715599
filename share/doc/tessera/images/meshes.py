#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws meshes.svg: the losses of meshes.csv by mesh and policy, and how far each is from that of one rank.

meshes.py [NAME=METRICS.jsonl...]   takes the losses of other runs first, one rank first; date and processor go to meshes.csv
                                    by hand
"""

import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import curves  # noqa: E402
import drawing  # noqa: E402

DATA = HERE / "meshes.csv"
LEAST = -11  # power of ten of a difference; equal losses are drawn there


def apart(own, base):
    """Power of ten of the greatest relative difference up to each step."""
    most, powers = 0, []
    for mine, of_one in zip(own, base):
        most = max(most, abs(mine / of_one - 1))
        powers.append(math.log10(most) if most else LEAST)
    return powers


def picture():
    _, names, losses = curves.read(DATA)
    differences = [None, *(apart(line, losses[0]) for line in losses[1:])]
    steps = range(len(losses[0]))
    return drawing.svg(960, 400, "Losses of a run on several meshes beside one rank",
                       curves.panel(60, 440, "loss", losses, steps, 20, (3, 9, range(3, 10), str)),
                       curves.panel(560, 930, "largest relative difference from 1 rank so far", differences, steps, 20,
                                    (LEAST, -6, range(LEAST, -5), lambda power: "equal" if power == LEAST else f"1e{power}")),
                       curves.legend(names))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        curves.take(DATA, sys.argv[1:], 13)
    (HERE / "meshes.svg").write_text(picture(), encoding="utf-8")
