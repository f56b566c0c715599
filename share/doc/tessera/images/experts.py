#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws experts.svg: the same eight ranks as dp_shard x tp, and as efsdp x ep."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 860, 304
TP, EP, RANKS, EXPERTS = 2, 4, 8, 8
KINDS = ["blue", "yellow", "green", "red"]


def dense():
    """A row for each data-parallel rank: its tensor-parallel ranks split each matrix."""
    parts = [drawing.text(165, 22, "all other parameters", "title"), drawing.text(165, 44, "dp_shard = 4, tp = 2", "small")]
    for rank in range(RANKS):
        x, y = 60 + rank % TP * 110, 60 + rank // TP * 46
        parts += drawing.box(x, y, 100, 38, [f"rank {rank}"], "box")
    parts += [drawing.line((48, 62), (48, 236)), drawing.text(8, 272, "dp_shard: a shard of each parameter", "small left"),
              drawing.line((62, 248), (268, 248)), drawing.text(8, 290, "tp: a part of each matrix", "small left")]
    return parts


def experts():
    """ep is fastest: four neighbouring ranks hold all experts; the same experts are sharded over efsdp."""
    parts = [drawing.text(605, 22, "parameters of the experts", "title"), drawing.text(605, 44, "efsdp = 2, ep = 4", "small")]
    for rank in range(RANKS):
        x, y = 390 + rank % EP * 112, 60 + rank // EP * 74
        first = rank % EP * EXPERTS // EP
        parts += drawing.box(x, y, 102, 62, [f"rank {rank}", f"experts {first}, {first + 1}", "a half of each"], KINDS[rank % EP])
    parts += [drawing.line((378, 62), (378, 192)), drawing.line((392, 212), (826, 212)),
              drawing.text(392, 232, "ep: tokens travel to the ranks of their experts, and back", "small left"),
              drawing.text(392, 252, "efsdp: the ranks with the same experts share their parameters", "small left")]
    return parts


def picture():
    return drawing.svg(WIDTH, HEIGHT, "Expert parallelism regroups the ranks of a mesh", dense(), experts())


if __name__ == "__main__":
    (HERE / "experts.svg").write_text(picture(), encoding="utf-8")
