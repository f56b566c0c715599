#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Converts the model in a DCP checkpoint of PyTorch, as TorchTitan writes it, to safetensors files
that `tessera ckpt import` reads.

    dcp_to_safetensors.py STEP_FOLDER OUT [--shard-gb 4]
    tessera ckpt import OUT --to MODEL --config JOB.toml       MODEL: checkpoint.initial_load_path of runs

Needs torch and safetensors, one process and the memory of one output file. The .metadata of DCP is a
pickle: convert only files that you trust. Optimizer, schedule and data position are not converted.
Tensors keep their types, and their names without a leading "model.". The names must be those of a
Llama. For another family, use TorchTitan's scripts/checkpoint_conversion/convert_to_hf.py, and import
the folder that it writes.
"""
import argparse
import json
import pathlib
import sys

NOT_THE_MODEL = ("optimizer", "lr_scheduler", "dataloader", "train_state", "ft_dataloader")


def model_tensors(metadata):
    """Key in the checkpoint -> (name, shape, dtype) of each tensor of the model."""
    tensors = {}
    for key, entry in metadata.state_dict_metadata.items():
        if key.split(".")[0].rstrip("0123456789-") in NOT_THE_MODEL or not hasattr(entry, "properties"):
            continue
        tensors[key] = (key.removeprefix("model."), tuple(entry.size), entry.properties.dtype)
    return tensors


def in_files(tensors, limit):
    """The keys, in order, so that no file but that of one large tensor is above `limit` bytes."""
    files, held = [[]], 0
    for key, (_, shape, dtype) in sorted(tensors.items()):
        size = dtype.itemsize
        for n in shape:
            size *= n
        if files[-1] and held + size > limit:
            files.append([])
            held = 0
        files[-1].append(key)
        held += size
    return files


def convert(source, out, limit):
    import torch
    import torch.distributed.checkpoint as dcp
    from safetensors.torch import save_file
    tensors = model_tensors(dcp.FileSystemReader(source).read_metadata())
    if not tensors:
        sys.exit(f"{source} holds no tensor of a model")
    out.mkdir(parents=True)
    files, weight_map = in_files(tensors, limit), {}
    for number, keys in enumerate(files, 1):
        name = f"model-{number:05d}-of-{len(files):05d}.safetensors"
        state = {key: torch.empty(tensors[key][1], dtype=tensors[key][2]) for key in keys}
        dcp.load(state, checkpoint_id=source, no_dist=True)
        save_file({tensors[key][0]: state[key] for key in keys}, out / name, {"format": "pt"})
        weight_map.update({tensors[key][0]: name for key in keys})
    (out / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}, indent=1) + "\n")
    print(f"{out}: {len(tensors)} tensors in {len(files)} files")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=pathlib.Path, metavar="STEP_FOLDER")
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--shard-gb", type=float, default=4)
    args = parser.parse_args()
    if not (args.source / ".metadata").exists():
        sys.exit(f"{args.source} is no DCP checkpoint (no .metadata in it); give one step's folder")
    if args.out.exists():
        sys.exit(f"{args.out} exists; choose another folder")
    convert(args.source, args.out, args.shard_gb * 1e9)


if __name__ == "__main__":
    main()
