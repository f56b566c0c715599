#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_seeds.py SOURCE_DIR OUT: first inputs for the fuzz targets, small ones made from the recipes and golden files."""
import gzip
import json
import pathlib
import struct
import sys

source, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
golden = source / "tests/golden"


def put(target, name, data):
    (out / target).mkdir(parents=True, exist_ok=True)
    (out / target / name).write_bytes(data if isinstance(data, bytes) else data.encode())


def config():
    for recipe in sorted((source / "share/tessera/recipes").glob("*.toml")):
        put("config", recipe.stem, recipe.read_text())
    keys = json.loads((golden / "config/torchtitan_keys.json").read_text())
    flags = [f"--{key}={json.dumps(value).strip(chr(34))}" for key, value in keys.items() if value is not None]
    for i in range(0, len(flags), 20):
        put("config", f"flags{i}", "\0" + "\0".join(flags[i:i + 20]))
    put("config", "reshard", '[[parallelism.reshard_rules]]\nmatch = "layers.*"\npolicy = 2\n\0--training.steps\x003\0--no-such')
    put("config", "odd", 'a.b."c.d" = 0x1F\n[x]\ny = [1, [2.5e3, "z"], {k = 1979-05-27T07:32:00Z}]\nt = """\nq""""\nl = \'\'\'m\'\'\'\n')
    put("config", "lists", '[parallelism]\nmodule_fqns_per_model_part = [["tok_embeddings", "layers.0"], ["norm", "output"]]\n'
        'pipeline_parallel_stage_map = [0, 1, 1, 0]\n')


def sweep():
    for file in sorted((source / "share/tessera/sweeps").glob("*.toml")):
        put("sweep", file.stem, file.read_text())
    put("sweep", "random", 'job = "j"\n[random]\nseed = 1\ncount = 3\noptimizer.lr = { log = [1e-4, 1] }\nmodel.flavor = ["a", "b"]\n'
        '[[list]]\ntraining.steps = 3\n[[list]]\nmodel.converters = ["x"]\n[slurm]\nnodes = 2\n')
    put("sweep", "odd", 'job = "j"\ntime = "1-2:3"\n[grid.training]\nsteps = { linear = [1, 9], count = 3 }\n[[exclude]]\ntraining.steps = [1, 5]\n')


def small_tokenizer(path):
    """The same steps around a vocabulary that is small enough to be mutated with some effect."""
    document = json.loads(path.read_text())
    model = document["model"]
    merges = [m if isinstance(m, list) else m.split(" ") for m in model["merges"]][:8]
    wanted = {t for left, right in merges for t in (left, right, left + right)} | set("Itsaecnv12") | {"\u0120"}
    added = document["added_tokens"][:3]
    kept = sorted((t for t in wanted if t in model["vocab"]), key=model["vocab"].get)
    model["vocab"] = {t: i for i, t in enumerate(kept)}
    model["merges"] = merges
    for i, token in enumerate(added):
        token["id"] = len(kept) + i
        model["vocab"].pop(token["content"], None)
    document["added_tokens"] = added
    return json.dumps(document, ensure_ascii=False)


def tokenizer():
    for path in sorted(golden.glob("*/tokenizer.json")):
        put("tokenizer", path.parent.name, small_tokenizer(path) + "\0It's  a cat 12\n")


def safetensors():
    header = {"__metadata__": {"format": "pt"}, "a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
              "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]}, "e": {"dtype": "I64", "shape": [0, 7], "data_offsets": [26, 26]},
              "z": {"dtype": "F8_E4M3", "shape": [5], "data_offsets": [26, 31]}}
    text = json.dumps(header).encode()
    put("safetensors", "made", b"\1" + text + b"\0" + bytes(range(31)))
    put("safetensors", "raw", b"\2" + struct.pack("<Q", len(text)) + text + bytes(31))
    put("safetensors", "empty", b"\1{}\0")


def corpus():
    put("corpus", "jsonl", b'\1{"text": "one"}\n\n{"n": [1, {"x": null}], "text": "two \\u00e9 \\ud83d\\ude00"}\r\n')
    text = "Genesis 1\n1 In the beginning\nGod created\n\n  indented\n2 Kings 22\n\nthe end\n"
    for how in (0, 2, 4, 6, 8, 14):
        put("corpus", f"text{how}", bytes([how]) + text.encode())
    put("corpus", "regex", b"\x10^(?:[1-3] )?[A-Z][A-Za-z ]{0,24}? \\d+$\n" + text.encode())
    put("corpus", "regex2", b"\x18(?i:it)|\\p{L}+(?=x)|[^\\s\\w]\\K.\n" + text.encode())


def packed_corpus():
    """Text in gzip, and in a Zstandard frame of one raw block."""
    lines = b'{"text": "one"}\n{"text": "two"}\n'
    put("corpus", "gzip", b"\x21" + gzip.compress(lines, mtime=0) + gzip.compress(b"", mtime=0))
    block = struct.pack("<I", len(lines) << 3 | 1)[:3] + lines
    put("corpus", "zstd", b"\x41" + b"\x28\xb5\x2f\xfd\x20" + bytes([len(lines)]) + block)


def token_file():
    for vocab, width, letter in ((300, 2, "H"), (70000, 4, "I")):
        ids = struct.pack(f"<7{letter}", *range(7))
        ids += bytes(-len(ids) % 8)
        header = struct.pack("<8sIIQQQQQQqqQ4QQ", b"TSRATOKS", 1, width, 7, 2, vocab, 5, 6, 7, 0, -1, 0, 0, 0, 0, 0, 0)
        put("token_file", f"of{width}", b"\1" + header + ids + struct.pack("<3Q", 0, 3, 7))
    put("token_file", "raw", b"\2TSRATOKS")


def manifest():
    table = {"offset": 2048, "count": 1, "crc32c": "00000000"}
    shard = {"name": "shard-pp0.h5", "bytes": 4096, "header_crc32c": "0123abcd", "box_dims": 2, "boxes": table, "checksums": table,
             "tensors": [[0, 2]]}
    head = {"format": "tessera-checkpoint", "version": [1, 0], "block_bytes": 4 << 20, "uuid": "u", "step": 7, "mesh": "pp1.r1.s1.cp1.tp1",
            "written": "2026-01-31T12:00:00Z", "writer": "tessera 0.1.0", "state": {"step": 7, "more": [1, -2, 0.5, None, True]}, "config": "",
            "index": {"bytes": 9, "crc32c": "ffffffff"}, "tensors": [["model/a", "f32", [2, 3]], ["model/b", "bf16", []]], "files": [shard]}
    put("manifest", "whole", json.dumps(head)[:-1] + ",\n")
    put("manifest", "bare", json.dumps(head | {"index": None, "tensors": [], "files": []})[:-1] + ",\n")


def shard():
    def record(tensors, dims, boxes, checksums, run, data):
        return struct.pack("<BBHBHBBB", tensors, dims, *boxes, *checksums, *run) + data

    # Tensor a [4, 6] in two boxes of two rows, 48 bytes each; b [3] whole; rows of int64 [tensor, offset, offsets, extents].
    rows = [(0, 0, 0, 0, 2, 6), (0, 48, 2, 0, 2, 6), (1, 96, 0, 0, 3, 0), (2, 104, 0, 0, 0, 0)]
    data = bytes(range(112)) + b"".join(struct.pack("<6q", *row) for row in rows) + bytes(16) + b"rest"
    put("shard", "whole", record(3, 2, (112, 4), (112 + 48 * 4, 4), (0, 3), data))
    put("shard", "more", record(6, 2, (112, 4), (112 + 48 * 4, 4), (0, 6), data))
    put("shard", "none", record(0, 0, (0, 0), (0, 0), (0, 0), b""))


def metrics():
    line = '{"step": %d, "loss": %s, "grad_norm": 1.5, "lr": 0.001, "tokens": 512, "step_seconds": 0.25, "tokens_per_second": 2048, ' \
           '"tps": 256, "mfu": null, "memory_bytes": 1048576, "moe/entropy": 0.5}\n'
    put("metrics", "run", b"\3" + b"".join((line % (i, 8.0 / i)).encode() for i in range(1, 8)) + b'{"step": 8, "lo')
    put("metrics", "odd", b"\0" + (line % (9223372036854775807, "-1e29")).encode() + b'{"step": 1, "x": [{"a": 1}], "s": "t"}\n')


def run():
    attempts = b'{"format": "tessera-run 1", "attempts": [{"id": "a", "started": "2026-11-23T07:00:00Z", "first_step": 2, "ranks": 8, ' \
               b'"mesh": "pp=2", "hosts": ["n1"], "command_line": ["tessera", "train"], "versions": {"mpi": "4.1"}}]}'
    steps = b"".join(b'{"step": %d, "loss": 4.5, "lr": 0.001, "validation/loss": 5, "skipped_steps": 1}\n' % i for i in range(1, 9))
    put("run", "whole", attempts + b"\0" + steps)
    put("run", "steps", b'{"attempts":[]}\0' + steps)


def schedule():
    put("schedule", "one", "0F0,0F1,,0B0,0B1\n,1F0,1B0,1F1,1B1\n")
    put("schedule", "zero_bubble", "0F0,3F0,3I0,3W0,0B0\n1F0,2F0,(2I0;2W0)OVERLAP_F_B,1B0\n")
    put("schedule", "transfers", "0F0,0SEND_F0,1UNSHARD\n")


for make in (config, sweep, tokenizer, safetensors, corpus, packed_corpus, token_file, manifest, shard, metrics, run, schedule):
    make()
