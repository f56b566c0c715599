#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws components.svg: the components on their levels, from the lists in the CMakeLists.txt files of this checkout."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[3]
sys.path[:0] = [str(HERE), str(ROOT / "tests/docs")]

import drawing  # noqa: E402
from facts import Facts  # noqa: E402

WIDTH, LEFT, ROW, BOX, HEIGHT = 900, 40, 74, 116, 34
PROGRAM = "app"


def reach(uses, name):
    return set().union({name}, *(reach(uses, one) for one in uses[name]))


def direct(uses):
    """Only what no other used component brings along."""
    return {name: [one for one in used if not any(one in reach(uses, other) for other in used if other != one)]
            for name, used in uses.items()}


def layered(uses, levels):
    """Rows of names from the lowest level, and edges between neighbouring rows. An edge over several rows passes through
    a place without a name in each."""
    rows = [[] for _ in range(max(levels.values()))]
    for name in sorted(levels):
        rows[levels[name] - 1].append(name)
    edges = []
    for name, used in sorted(uses.items()):
        for one in used:
            below = one
            for level in range(levels[one] + 1, levels[name]):
                place = (one, level)  # shared by all that use it from above
                if place not in rows[level - 1]:
                    rows[level - 1].append(place)
                edges.append((place, below))
                below = place
            edges.append((name, below))
    return rows, sorted(set(edges), key=str)


def crossings(upper, lower, edges):
    at = {name: index for row in (upper, lower) for index, name in enumerate(row)}
    pairs = [(at[a], at[b]) for a, b in edges if a in upper and b in lower]
    return sum((a - c) * (b - d) < 0 for i, (a, b) in enumerate(pairs) for c, d in pairs[:i])


def total(rows, edges):
    return sum(crossings(upper, lower, edges) for lower, upper in zip(rows, rows[1:]))


def untangled(rows, edges):
    """The rows with their names exchanged as long as fewer edges cross."""
    best, improved = total(rows, edges), True
    while improved:
        improved = False
        for row in rows:
            for i in range(len(row)):
                for j in range(i):
                    row[i], row[j] = row[j], row[i]
                    now = total(rows, edges)
                    if now < best:
                        best, improved = now, True
                    else:
                        row[i], row[j] = row[j], row[i]
    return rows


def pushed(wished, half, edge):
    """The wishes, each moved right until it is clear of the one before it."""
    xs = []
    for wish, own in zip(wished, half):
        xs.append(max(wish, edge + own))
        edge = xs[-1] + own
    return xs


def apart(row, wished):
    """Middles near the wished ones, in the order of the row, without overlaps: the mean of pushing right and pushing left."""
    half = [BOX / 2 + 12 if isinstance(name, str) else 14 for name in row]
    right = pushed(wished, half, LEFT)
    left = [-x for x in reversed(pushed([-wish for wish in reversed(wished)], half[::-1], -WIDTH))]
    xs = [(one + other) / 2 for one, other in zip(left, right)]
    xs = pushed(xs, half, LEFT)
    return [-x for x in reversed(pushed([-x for x in reversed(xs)], half[::-1], -WIDTH))]


def places(rows, edges):
    """The middle of each name, moved towards its neighbours above and below."""
    x = {}
    for row in rows:
        x |= {name: LEFT + (index + 0.5) * (WIDTH - LEFT) / len(row) for index, name in enumerate(row)}
    for _ in range(60):
        for row in rows:
            wished = []
            for name in row:
                near = [x[b] for a, b in edges if a == name] + [x[a] for a, b in edges if b == name]
                wished.append((x[name] + sum(near) / len(near)) / 2)
            x |= dict(zip(row, apart(row, wished)))
    return {name: (round(x[name], 1), 40 + (len(rows) - 1 - level) * ROW) for level, row in enumerate(rows) for name in row}


def picture():
    facts = Facts(ROOT)
    used = direct({**facts.uses, PROGRAM: sorted(facts.uses)})
    rows, edges = layered(used, facts.levels)
    at = places(untangled(rows, edges), edges)
    parts = [drawing.text(8, 16, "level", "small left")]
    for level in range(1, len(rows) + 1):
        y = 40 + (len(rows) - level) * ROW
        parts.append(drawing.text(16, y + 5, str(level), "small"))
    for above, below in edges:
        (x, y), (to_x, to_y) = at[above], at[below]
        parts.append(drawing.curve((x, y + HEIGHT / 2 * isinstance(above, str)), (to_x, to_y - HEIGHT / 2 * isinstance(below, str))))
    for name in (name for row in rows for name in row if isinstance(name, str)):
        x, y = at[name]
        kind = "green" if name == PROGRAM else "blue" if name in facts.with_torch else "box"
        parts += drawing.box(x - BOX / 2, y - HEIGHT / 2, BOX, HEIGHT, [name], kind)
    y = 40 + len(rows) * ROW - 24
    for x, kind, words in ((60, "box", "without LibTorch"), (250, "blue", "with LibTorch"), (420, "green", "the program")):
        parts += [drawing.rect(x, y, 24, 14, kind, 3), drawing.text(x + 32, y + 12, words, "small left")]
    return drawing.svg(WIDTH, y + 28, "The components of Tessera and their levels", parts)


if __name__ == "__main__":
    (HERE / "components.svg").write_text(picture(), encoding="utf-8")
