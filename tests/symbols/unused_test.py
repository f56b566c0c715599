#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lists functions of the libraries that no library and not the program uses.

unused_test.py --build FOLDER [--root FOLDER]

A function is used if code or data of another function refers to it, as the relocations of the object files say. What only
unused functions use is unused. Constructors, destructors and assignments come with their class, and are not listed. Sources
that this build does not compile (CUDA, NCCL) use what they name. unused.txt lists what may be unused, each with its reason.
"""

import argparse
import bisect
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

FOLDERS = ("src/", "mesh/", "checkpoint/")
OTHER_BUILDS = re.compile(r"\.cuh?$|/cuda/|nccl|_cuda\.cpp$|/device\.cpp$")
SYMBOL = re.compile(r"\s*\d+: ([0-9a-f]+)\s+(\d+|0x[0-9a-f]+) (FUNC|OBJECT)\s+(\w+)\s+\w+\s+(\d+) (\S+)")
RELOCATIONS_OF = re.compile(r"Relocation section '\.rela(\S+)' at offset (0x[0-9a-f]+)")
SECTION = re.compile(r"\s*\[\s*\d+\] \.rela\S*\s+RELA\s+\w+ (\w+) \w+ \w+\s+\w+\s+\d+\s+(\d+)\s+\d+$")
NO_USE = (".eh_frame", ".debug", ".gcc_except")  # what says nothing of who calls whom


def readelf(flags, path):
    return subprocess.run(["readelf", flags, path], text=True, stdout=subprocess.PIPE, check=True).stdout.splitlines()


class Uses:
    def __init__(self):
        self.defined = set()  # global functions
        self.users = defaultdict(set)  # of a symbol: symbols of functions and data, or sections
        self.same = defaultdict(set)  # symbols of one address: a constructor has two or three

    def add(self, path, of_library):
        """Reads an object file. Functions of programs count as used: calls between them need no relocation."""
        places, addresses = defaultdict(list), defaultdict(set)
        for found in filter(None, map(SYMBOL.match, readelf("-Ws", path))):
            at, size, kind, binding, section, name = found.groups()
            places[int(section)].append((int(at, 16), int(size, 0), name))
            if kind == "FUNC" and binding != "LOCAL":
                addresses[section, at].add(name)
                self.defined |= {name} if binding == "GLOBAL" and of_library else set()
        for names in addresses.values():
            for name in names:
                self.same[name] |= names
        for found in places.values():
            found.sort()
        sections = {int(found[1], 16): int(found[2]) for found in filter(None, map(SECTION.match, readelf("-WS", path)))}
        self.add_relocations(path, places, sections)

    def add_relocations(self, path, places, sections):
        section, name = 0, ""
        for line in readelf("-Wr", path):
            header = RELOCATIONS_OF.match(line)
            if header:
                name, section = header[1], sections[int(header[2], 16)]
            words = line.split()
            if len(words) > 4 and re.fullmatch("[0-9a-f]{16}", words[0]) and not name.startswith(NO_USE):
                self.users[words[4]].add(holder(places[section], int(words[0], 16)) or name)

    def unused(self):
        """Functions that nothing uses but what is unused itself."""
        unused, before = set(), None
        while unused != before:
            before = set(unused)
            for name in self.defined - unused:
                together = self.same[name]
                users = set().union(*(self.users[one] for one in together)) - together
                if users <= unused:
                    unused.add(name)
        return unused


def holder(places, at):
    """The function or object that has the byte at this offset of a section."""
    index = bisect.bisect_right(places, (at, sys.maxsize, "")) - 1
    if index >= 0 and at < places[index][0] + max(places[index][1], 1):
        return places[index][2]
    return None


def readable(symbols):
    """Functions without their arguments, but for constructors, destructors and assignments."""
    text = subprocess.run(["c++filt"], input="\n".join(symbols), text=True, stdout=subprocess.PIPE, check=True).stdout
    for line in text.splitlines():
        name = re.sub(r"\[abi:\w+\]", "", line).split("(")[0].split(" ")[-1]
        own, of = name.rsplit("::", 1)[-1], name.rsplit("::", 2)[-2] if name.count("::") > 1 else ""
        if name.startswith("tessera::") and own.lstrip("~") != of and own != "operator=":
            yield name


def objects(build):
    """(object file, whether it is of a library) of libraries and programs; none of sources that are gone."""
    for entry in json.loads((build / "compile_commands.json").read_text("utf-8")):
        output = re.search(r" -o (\S+\.o) ", entry["command"])
        if output and output[1].startswith(FOLDERS) and "_verify_interface_" not in output[1]:
            yield build / output[1], not output[1].startswith("src/app/")


def words_of_other_builds(root):
    files = [path for folder in FOLDERS for path in (root / folder).rglob("*") if OTHER_BUILDS.search(str(path))]
    return {word for path in files for word in re.findall(r"(\w+)\(", path.read_text("utf-8"))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2], type=Path)
    args = parser.parse_args()
    uses, lines = Uses(), (Path(__file__).parent / "unused.txt").read_text("utf-8").splitlines()
    for path, of_library in objects(args.build):
        uses.add(path, of_library)
    allowed = {line.split()[0] for line in lines if line and not line.startswith("#")}
    elsewhere = words_of_other_builds(args.root)
    unused = {name for name in readable(sorted(uses.unused())) if name.rsplit("::", 1)[-1] not in elsewhere}
    findings = [f"{name} is used by tests only; remove it, or say in unused.txt why not" for name in unused - allowed]
    findings += [f"{name} is used, or gone; remove it from unused.txt" for name in allowed - unused]
    print("\n".join(sorted(findings)) if findings else f"{len(uses.defined)} functions, {len(unused)} of them for tests only")
    return 1 if findings or len(uses.defined) < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
