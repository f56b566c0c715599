#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file of random tokens for training.dataset = "replay":  batches.py FILE STEPS ROWS SEQ VOCAB"""
import array
import json
import random
import struct
import sys

file, *numbers = sys.argv[1:]
steps, rows, seq, vocab = map(int, numbers)
draw = random.Random(7)
tokens = [array.array("i", (draw.randrange(vocab) for _ in range(seq + 1))) for _ in range(steps * rows)]
inputs = b"".join(row[:-1].tobytes() for row in tokens)
labels = b"".join(row[1:].tobytes() for row in tokens)
shape = [steps, rows, seq]
header = json.dumps({"inputs": {"dtype": "I32", "shape": shape, "data_offsets": [0, len(inputs)]},
                     "labels": {"dtype": "I32", "shape": shape, "data_offsets": [len(inputs), len(inputs) + len(labels)]}})
header = header.ljust(-(-len(header) // 8) * 8)
with open(file, "wb") as out:
    out.write(struct.pack("<Q", len(header)) + header.encode() + inputs + labels)
