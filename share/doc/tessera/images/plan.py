#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws plan.svg: from a job file to what every rank runs."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 960, 344
TOP, BOTTOM = 40, 236  # of the boxes of rank 0, and of every rank
PARTS = [  # what plans become, and on which component
    (["layout", "mesh/device_mesh"], "box"),
    (["model, sharding", "tensor, recompute, pipeline", "parallel/stages"], "blue"),
    (["data", "inputs/samples"], "blue"),
    (["optimizer, faults", "train/trainer"], "blue"),
    (["load, save", "train/job_saves"], "blue"),
]


def rank_zero():
    boxes = [(["job.toml", "and flags"], "box", 100), (["JobConfig", "config: each key alone,", "with the origin of its value"], "box", 220),
             (["JobPlan", "plan: rules across keys, for", "N ranks and this model"], "green", 230),
             (["all problems", "with file and line,", "exit code 2"], "red", 150)]
    x, parts = 8, [drawing.text(8, 24, "On rank 0; tessera config check and tessera sweep do the same without ranks", "title left")]
    for at, (lines, kind, width) in enumerate(boxes):
        parts += drawing.box(x, TOP, width, 66, lines, kind)
        if at:
            kind = "line dashed" if at == 3 else "line"
            parts.append(drawing.line((x - 45, TOP + 33), (x - 2, TOP + 33), kind=kind))
        x += width + 46
    return parts


def broadcast():
    middle = 8 + 100 + 46 + 110
    return [drawing.line((middle, TOP + 68), (middle, 162)), drawing.rect(8, 162, 944, 34, "yellow"),
            drawing.text(480, 184, "broadcast of the resolved job as text; or of the error, which every rank throws"),
            drawing.line((90, 198), (90, BOTTOM + 26))]


def every_rank():
    y = BOTTOM + 28
    parts = [drawing.text(160, BOTTOM + 10, "On every rank: values, enums and no text to parse", "title left")]
    parts += drawing.box(8, y, 150, 66, ["JobPlan", "plan::plan_job"], "green")
    x, widths = 204, [142, 190, 112, 142, 130]
    for (lines, kind), width in zip(PARTS, widths):
        parts += drawing.box(x, y, width, 66, lines, kind)
        x += width + 8
    parts.append(drawing.line((159, y + 33), (202, y + 33)))
    return parts


def picture():
    return drawing.svg(WIDTH, HEIGHT, "From a job file to what every rank runs", rank_zero(), broadcast(), every_rank())


if __name__ == "__main__":
    (HERE / "plan.svg").write_text(picture(), encoding="utf-8")
