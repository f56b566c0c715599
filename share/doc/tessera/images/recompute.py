#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws recompute.svg: which tensors of a block are kept between forward and backward, by mode."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import drawing  # noqa: E402

WIDTH, HEIGHT = 842, 244
TENSORS = ["input", "norm", "wqkv", "sdpa", "wo", "norm", "w13", "SwiGLU", "w2"]
PRODUCTS = {"wqkv", "sdpa", "wo", "w13", "w2"}
MODES = [  # mode, whether it keeps a tensor
    ("none", lambda name: True),
    ("selective, op", lambda name: name == "input" or name in PRODUCTS),
    ("full", lambda name: name == "input"),
]


def picture():
    left, width = 132, 74
    parts = [drawing.text(left, 22, "what forward computes in a block (simplified)", "small left")]
    for at, name in enumerate(TENSORS):
        x = left + at * (width + 4)
        parts.append(drawing.text(x + width / 2, 46, name, "code"))
        for row, (_, keeps) in enumerate(MODES):
            parts.append(drawing.rect(x, 58 + row * 44, width, 32, "solid" if keeps(name) else "box"))
    for row, (mode, _) in enumerate(MODES):
        parts.append(drawing.text(8, 78 + row * 44, mode, "left"))
    for x, kind, words in ((left, "solid", "kept"), (left + 90, "box", "recomputed in backward")):
        parts += [drawing.rect(x, 196, 24, 14, kind, 3), drawing.text(x + 32, 208, words, "small left")]
    parts.append(drawing.text(left, 234, "A memory budget lies between \"none\" and \"full\": first some blocks by operation, then whole blocks.", "small left"))
    return drawing.svg(WIDTH, HEIGHT, "What each mode of recompute keeps of a block", parts)


if __name__ == "__main__":
    (HERE / "recompute.svg").write_text(picture(), encoding="utf-8")
