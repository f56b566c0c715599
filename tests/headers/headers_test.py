#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each public header alone, syntax only: a header must include what it uses.

headers_test.py --build FOLDER [--root FOLDER] [--times] [COMPONENT...]   of these components; default: all

A header that includes tessera/kernels/tensor.hpp is compiled with the build's precompiled tensor.hpp, others without.
"""

import argparse
import json
import re
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TENSORS = "tessera/kernels/tensor.hpp"
SOURCES = {True: "cmake/tensor_pch.cpp", False: "src/base/error.cpp"}  # compiled with and without it in the build


def included(header, include):
    """The headers of Tessera that a header includes, directly or not, and itself."""
    open_, found = [header], set()
    while open_:
        name = open_.pop()
        if name not in found and (include / name).is_file():
            found.add(name)
            open_ += re.findall(r'^#include [<"](tessera/[^>"]+)', (include / name).read_text("utf-8"), re.M)
    return found


def flags_of(build, source):
    """The compiler's command line for this source, without the source."""
    for entry in json.loads((build / "compile_commands.json").read_text("utf-8")):
        if entry["file"].endswith(source):
            words = shlex.split(entry["command"])
            return words[:words.index("-o")]
    raise SystemExit(f"{build} does not compile {source}")


def command(header, include, flags):
    with_tensors = TENSORS in included(header, include)
    return [*flags[with_tensors], "-Werror", "-fsyntax-only", "-include", header, "-x", "c++", "/dev/null"]


def check(header, include, flags):
    """(seconds, what the compiler says) of a header."""
    begin = time.monotonic()
    done = subprocess.run(command(header, include, flags), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False)
    return time.monotonic() - begin, done.stdout if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2], type=Path)
    parser.add_argument("--times", action="store_true", help="print the seconds of each")
    parser.add_argument("components", nargs="*", metavar="COMPONENT")
    args = parser.parse_args()
    include = args.root / "include"
    headers = sorted(str(path.relative_to(include)) for path in include.rglob("*.hpp"))
    headers = [header for header in headers if not args.components or header.split("/")[1] in args.components]
    flags = {with_tensors: flags_of(args.build, source) for with_tensors, source in SOURCES.items()}
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for header, (seconds, said) in zip(headers, pool.map(lambda header: check(header, include, flags), headers)):
            failed += said != ""
            if args.times or said:
                print(f"{seconds:6.2f} s  {header}\n{said}", end="")
    print(f"{len(headers)} headers, {failed} of them do not compile alone")
    return 1 if failed or not headers else 0


if __name__ == "__main__":
    sys.exit(main())
