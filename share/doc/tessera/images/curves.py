# SPDX-License-Identifier: Apache-2.0
"""Losses of several runs in a table, and pictures of their curves."""

import json
from pathlib import Path

import drawing

ABOVE, BELOW = 48, 330
COLOURS = ["#8c959f", "#0969da", "#1a9f4a", "#c2571a", "#8250df", "#d1409a"]


def read(table):
    """Notes, names, and a list of losses for each name."""
    lines = table.read_text("utf-8").splitlines()
    notes = [line[1:].strip() for line in lines if line.startswith("#")]
    rows = [line.split(",") for line in lines if not line.startswith("#")]
    names = rows[0][1:]
    return notes, names, [[float(row[at + 1]) for row in rows[1:]] for at in range(len(names))]


def take(table, runs, decimals):
    """Puts the losses of runs, NAME=METRICS.jsonl each, below the table's notes."""
    notes = [line for line in table.read_text("utf-8").splitlines() if line.startswith("#")] if table.exists() else []
    names = [run.split("=", 1)[0] for run in runs]
    losses = [[json.loads(line)["loss"] for line in Path(run.split("=", 1)[1]).read_text("utf-8").splitlines()] for run in runs]
    rows = [",".join([str(at + 1), *(f"{loss:.{decimals}f}" for loss in step)]) for at, step in enumerate(zip(*losses))]
    table.write_text("\n".join([*notes, ",".join(["step", *names]), *rows]) + "\n", encoding="utf-8")


def grid(left, right, low, high, lines, label):
    """Horizontal lines with numbers; and the function from a value to its height."""
    y = lambda value: round(BELOW - (BELOW - ABOVE) * (value - low) / (high - low), 1)
    return [part for value in lines for part in (drawing.line((left, y(value)), (right, y(value)), kind="rule", arrow=False),
                                                 drawing.text(left - 8, y(value) + 4, label(value), "right small"))], y


def path(points, colour, width):
    steps = "L".join(f"{x:g} {y:g}" for x, y in points)
    return f'<path d="M{steps}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"/>'


def panel(left, right, title, values, steps, ticks, scale):
    """One line for each list of values, at the given steps from 0; the first of all is wide. A list may be None. `scale`: the
    least and the greatest value, those with a line, and their label."""
    low, high, lines, label = scale
    parts, y = grid(left, right, low, high, lines, label)
    last = max(len(line) for line in values if line)
    x = lambda step: round(left + (right - left) * step / last, 1)
    for step in range(0, last + 1, ticks):
        parts.append(drawing.text(x(step), BELOW + 20, str(step), "small"))
    for at, line in enumerate(values):
        if line:
            points = [(x(step + 1), y(min(max(line[step], low), high))) for step in steps]
            parts.append(path(points, COLOURS[at], 1.6 if at else 3.5))
    return [drawing.text(left, 26, title, "title left"), *parts]


def legend(names):
    """Under both panels."""
    parts, x = [], 40
    for at, name in enumerate(names):
        parts += [path([(x, 374), (x + 24, 374)], COLOURS[at], 3), drawing.text(x + 32, 378, name, "left")]
        x += 56 + 6.8 * len(name)
    return parts
