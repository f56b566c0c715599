#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws low-precision.svg: the losses of low-precision.csv by recipe, and how far each is from that of bfloat16.

low-precision.py [NAME=METRICS.jsonl...]   takes the losses of other runs first, bfloat16 first; date and processor go to
                                           low-precision.csv by hand
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

DATA = HERE / "low-precision.csv"
WIDTH, HEIGHT = 960, 400
ABOVE, BELOW = 48, 330
COLOURS = ["#8c959f", "#0969da", "#1a9f4a", "#c2571a", "#8250df", "#d1409a"]
NEAR = 20  # steps of a mean


def read():
    """Notes, names, and a list of losses for each name."""
    lines = DATA.read_text("utf-8").splitlines()
    notes = [line[1:].strip() for line in lines if line.startswith("#")]
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    names = rows[0][1:]
    return notes, names, [[float(row[at + 1]) for row in rows[1:]] for at in range(len(names))]


def mean(losses):
    """Of each step and those before it."""
    return [sum(losses[max(0, at + 1 - NEAR):at + 1]) / min(at + 1, NEAR) for at in range(len(losses))]


def grid(left, right, low, high, lines, label):
    """Horizontal lines with numbers; and the function from a value to its height."""
    y = lambda value: round(BELOW - (BELOW - ABOVE) * (value - low) / (high - low), 1)
    return [part for value in lines for part in (drawing.line((left, y(value)), (right, y(value)), kind="rule", arrow=False),
                                                 drawing.text(left - 8, y(value) + 4, label(value), "right small"))], y


def path(points, colour, width):
    steps = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'


def panel(left, right, title, values, low, high, lines, label):
    """One line for each list of values, every third step, and the first over all others."""
    parts, y = grid(left, right, low, high, lines, label)
    last = len(values[0])
    x = lambda step: round(left + (right - left) * step / last, 1)
    for step in range(0, last + 1, 100):
        parts.append(drawing.text(x(step), BELOW + 20, str(step), "small"))
    for at, line in enumerate(values):
        shown = [*range(NEAR - 1, last - 1, 3), last - 1]
        points = [(x(step + 1), y(min(max(line[step], low), high))) for step in shown]
        parts.append(path(points, COLOURS[at], 1.6 if at else 3.5))
    return [drawing.text(left, 26, title, "title left"), *parts]


def legend(names):
    """Under both panels."""
    parts, x = [], 40
    for at, name in enumerate(names):
        parts += [path([(x, 374), (x + 24, 374)], COLOURS[at], 3), drawing.text(x + 32, 378, name, "left")]
        x += 56 + 6.8 * len(name)
    return parts


def picture():
    _, names, losses = read()
    means = [mean(line) for line in losses]
    difference = [[100 * (own / base - 1) for own, base in zip(line, means[0])] for line in means]
    return drawing.svg(WIDTH, HEIGHT, "Losses of linear layers in low precision beside bfloat16",
                       panel(60, 440, "loss, mean of 20 steps", means, 1, 8, range(1, 9), str),
                       panel(540, 930, "difference from bfloat16", difference, -2, 2, (-2, -1, 0, 1, 2), lambda share: f"{share:+d} %" if share else "0 %"),
                       legend(names))


def take(runs):
    """Puts the losses of some metrics.jsonl below the notes."""
    notes = [line for line in DATA.read_text("utf-8").splitlines() if line.startswith("#")] if DATA.exists() else []
    names = [run.split("=", 1)[0] for run in runs]
    losses = [[json.loads(line)["loss"] for line in Path(run.split("=", 1)[1]).read_text("utf-8").splitlines()] for run in runs]
    rows = [",".join([str(at + 1), *(f"{loss:.4f}" for loss in step)]) for at, step in enumerate(zip(*losses))]
    DATA.write_text("\n".join([*notes, ",".join(["step", *names]), *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(sys.argv[1:])
    (HERE / "low-precision.svg").write_text(picture(), encoding="utf-8")
