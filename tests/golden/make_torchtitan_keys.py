#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes config/torchtitan_keys.json: every key of TorchTitan's job configuration with its default.

    make_torchtitan_keys.py PATH/TO/torchtitan/config/job_config.py     (TorchTitan v0.2.2; needs neither torch nor TorchTitan)
"""
import dataclasses
import importlib.util
import json
import pathlib
import sys
import types


def load(path):
    for name in ("torch", "torchtitan", "torchtitan.tools", "torchtitan.tools.logging"):
        sys.modules[name] = types.ModuleType(name)
    sys.modules["torchtitan.tools.logging"].logger = None
    spec = importlib.util.spec_from_file_location("job_config", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["job_config"] = module
    spec.loader.exec_module(module)
    return module.JobConfig()


def flatten(value, prefix=""):
    for field in dataclasses.fields(value):
        member, key = getattr(value, field.name), prefix + field.name
        if dataclasses.is_dataclass(member):
            yield from flatten(member, key + ".")
        else:
            yield key, member


keys = dict(flatten(load(sys.argv[1])))
out = pathlib.Path(__file__).parent / "config" / "torchtitan_keys.json"
out.parent.mkdir(exist_ok=True)
out.write_text(json.dumps(keys, indent=1) + "\n")
print(len(keys), "keys")
