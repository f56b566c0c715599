#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that h5py shows every tensor of a checkpoint whole.

    check_h5py.py STEP_FOLDER        (needs h5py and numpy)

Each tensor is put together twice: by h5py from index.h5, and by hand from the shard files' bytes at the offsets that the box
tables give, without any HDF5 library. Both must be equal in every element.
"""
import json
import pathlib
import sys

import h5py
import numpy as np

RAW = {"f64": "<f8", "f32": "<f4", "f16": "<f2", "bf16": "<u2", "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "i1", "u8": "u1"}


def widened(values, dtype):
    """bfloat16 has no numpy type: h5py gives float32."""
    return (values.astype(np.uint32) << 16).view(np.float32) if dtype == "bf16" else values


def by_hand(folder, manifest):
    tensors = [np.zeros(shape, RAW[dtype]) for _, dtype, shape in manifest["tensors"]]
    seen = [np.zeros(shape, bool) for _, _, shape in manifest["tensors"]]
    for file in manifest["files"]:
        data = (folder / file["name"]).read_bytes()
        assert len(data) == file["bytes"], file["name"]
        dims, table = file["box_dims"], file["boxes"]
        rows = np.frombuffer(data, "<i8", table["count"] * (2 + 2 * dims), table["offset"]).reshape(table["count"], -1)
        for row in rows:
            number, at = int(row[0]), int(row[1])
            dtype, rank = manifest["tensors"][number][1], len(manifest["tensors"][number][2])
            offset, extent = row[2 : 2 + rank], row[2 + dims : 2 + dims + rank]
            box = tuple(slice(int(o), int(o + e)) for o, e in zip(offset, extent))
            values = np.frombuffer(data, RAW[dtype], int(np.prod(extent, dtype=np.int64)), at)
            assert not seen[number][box].any(), "two boxes overlap"
            tensors[number][box], seen[number][box] = values.reshape(extent), True
    assert all(part.all() for part in seen), "a tensor has holes"
    return tensors


def main():
    folder = pathlib.Path(sys.argv[1])
    manifest = json.loads((folder / "manifest.json").read_text())
    tensors = by_hand(folder, manifest)
    with h5py.File(folder / "index.h5", "r") as index:
        for (name, dtype, shape), expected in zip(manifest["tensors"], tensors):
            dataset = index[name]
            assert list(dataset.shape) == shape, (name, dataset.shape, shape)
            shown, expected = np.asarray(dataset[()]), widened(expected, dtype)
            assert shown.dtype == expected.dtype, (name, shown.dtype, expected.dtype)
            assert np.array_equal(shown, expected, equal_nan=shown.dtype.kind == "f"), name
            print(f"{dtype:5} {str(shape):16} {name}  {len(dataset.virtual_sources()) if dataset.is_virtual else 1} box(es)")
        for attribute in ("step", "mesh", "uuid", "versions", "config", "state"):
            assert attribute in index.attrs, attribute
        print(f"{len(tensors)} tensors of step {int(index.attrs['step'][0])} on {index.attrs['mesh']}: h5py and the bytes agree")


if __name__ == "__main__":
    main()
