#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws quickstart.svg, the picture of README: a mesh of 2 x 2 x 2 ranks beside the loss curve of quickstart.csv.

quickstart.py [METRICS.jsonl]   takes the curve of another run first; its date and processor go to quickstart.csv by hand
"""

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
WIDTH, HEIGHT = 960, 370
STYLE = """
  text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #57606a }
  .title { font-size: 16px; font-weight: 600; fill: #24292f }
  .number { font-size: 15px; font-weight: 600; fill: #fff; text-anchor: middle }
  .axis { stroke: #8c959f; stroke-width: 1.5; fill: none }
  .grid { stroke: #8c959f; stroke-opacity: .25 }
  .raw { fill: none; stroke: #3987e5; stroke-opacity: .35; stroke-width: 1.5 }
  .mean { fill: none; stroke: #3987e5; stroke-width: 2.5; stroke-linejoin: round }
  .resumed { stroke: #c2571a; stroke-width: 1.5; stroke-dasharray: 4 4 }
  .a0 { fill: #2f6fc4 } .a1 { fill: #5b95de } .a2 { fill: #1f5396 }
  .b0 { fill: #c2571a } .b1 { fill: #de8450 } .b2 { fill: #96400f }
  @media (prefers-color-scheme: dark) {
    text { fill: #9ea7b3 } .title { fill: #e6edf3 } .number { fill: #fff }
  }
"""
SIDE, RISE = 62, 30  # of a cube's front, and of its depth on the page


def cube(x, y, colour, rank):
    """A cube whose front's lower left corner is (x, y)."""
    top = f"M{x} {y - SIDE}l{RISE} {-RISE}h{SIDE}l{-RISE} {RISE}z"
    right = f"M{x + SIDE} {y - SIDE}l{RISE} {-RISE}v{SIDE}l{-RISE} {RISE}z"
    return (f'<rect class="{colour}0" x="{x}" y="{y - SIDE}" width="{SIDE}" height="{SIDE}"/>'
            f'<path class="{colour}1" d="{top}"/><path class="{colour}2" d="{right}"/>' + number(x, y, rank))


def number(x, y, rank):
    """A front cube has its rank on the front; of one behind only the right side is seen whole."""
    across, up = (SIDE + RISE / 2, SIDE / 2 + RISE / 2) if rank % 2 else (SIDE / 2, SIDE / 2)
    return f'<text class="number" x="{x + across:g}" y="{y - up + 5:g}">{rank}</text>'


def stage(x, pp):
    """The four ranks of a pipeline stage: data-parallel downwards, tensor-parallel into the page, back ones first."""
    parts = []
    for tp in (1, 0):
        for dp in (1, 0):
            left, below = x + tp * (RISE + 26), 170 + dp * (SIDE + 42) - tp * (RISE + 14)
            parts.append(cube(left, below + 40, "ab"[pp], 4 * pp + 2 * dp + tp))
    return parts


def arrow(x, y, to_x, to_y, label, label_x, label_y, anchor="start"):
    return [f'<path class="axis" marker-end="url(#head)" d="M{x} {y}L{to_x} {to_y}"/>',
            f'<text x="{label_x}" y="{label_y}" text-anchor="{anchor}">{label}</text>']


def mesh():
    return [f'<text class="title" x="24" y="30">8 MPI ranks: 2 pipeline stages x 2 data x 2 tensor</text>',
            *stage(64, 0), *stage(274, 1),
            *arrow(64, 340, 428, 340, "pipeline: each stage has half of the layers", 64, 361),
            *arrow(40, 150, 40, 314, "data: each has half of the batch", 0, 0)[:1],
            '<text transform="translate(30 314) rotate(-90)">data: half of the batch each</text>',
            *arrow(64, 100, 106, 64, "tensor: half of each matrix each", 78, 58)]


def read_curve():
    rows = [line.split(",") for line in (HERE / "quickstart.csv").read_text("utf-8").splitlines()]
    notes = [",".join(row)[1:].strip() for row in rows if row[0].startswith("#")]
    points = [(int(row[0]), float(row[1])) for row in rows if row[0].isdigit()]
    return notes, points


def smooth(points, most=11):
    """Mean over the neighbours, fewer at the ends."""
    means = []
    for at in range(len(points)):
        reach = min(at, len(points) - 1 - at, most // 2)
        near = [loss for _, loss in points[at - reach:at + reach + 1]]
        means.append((points[at][0], sum(near) / len(near)))
    return means


def curve(left=540, right=930, above=56, below=316):
    notes, points = read_curve()
    last, low, high = points[-1][0], 3, 9
    x = lambda step: round(left + (right - left) * step / last, 1)
    y = lambda loss: round(below - (below - above) * (loss - low) / (high - low), 1)
    path = lambda line: "M" + "L".join(f"{x(step)} {y(loss)}" for step, loss in line)
    parts = [f'<text class="title" x="{left}" y="30">Loss of <tspan font-family="monospace">./bootstrap run</tspan></text>']
    for loss in range(low, high + 1):
        parts.append(f'<path class="grid" d="M{left} {y(loss)}H{right}"/>'
                     f'<text x="{left - 8}" y="{y(loss) + 4}" text-anchor="end">{loss}</text>')
    for step in range(0, last + 1, 20):
        parts.append(f'<text x="{x(step)}" y="{below + 20}" text-anchor="middle">{step}</text>')
    parts += [f'<path class="raw" d="{path(points)}"/>', f'<path class="mean" d="{path(smooth(points))}"/>',
              f'<text x="{right}" y="{below + 40}" text-anchor="end">step</text>',
              f'<text x="{left}" y="{below + 40}">{notes[0]}</text>']
    if last > 100:
        parts.append(f'<path class="resumed" d="M{x(100)} {above}V{below}"/>'
                     f'<text x="{x(100) - 6}" y="{above + 14}" text-anchor="end">resumed on 4 x 1 x 2</text>')
    return parts


def picture():
    body = "\n".join([*mesh(), *curve()])
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'role="img">\n<title>A mesh of 2 x 2 x 2 ranks, and the loss curve of the quick start</title>\n'
            f'<style>{STYLE}</style>\n<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            f'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#8c959f"/></marker></defs>\n{body}\n</svg>\n')


def take(metrics):
    """Puts the losses of a metrics.jsonl below the notes of quickstart.csv."""
    notes = [line for line in (HERE / "quickstart.csv").read_text("utf-8").splitlines() if line.startswith("#")]
    steps = [json.loads(line) for line in Path(metrics).read_text("utf-8").splitlines()]
    rows = [f"{step['step']},{step['loss']:.5f}" for step in steps]
    (HERE / "quickstart.csv").write_text("\n".join([*notes, "step,loss", *rows]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        take(sys.argv[1])
    (HERE / "quickstart.svg").write_text(picture(), encoding="utf-8")
