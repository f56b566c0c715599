#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The licence line of source files: line 1, or line 2 below a line that must come first (#!, #compdef, #%Module).

spdx.py --add   adds it to each source file that lacks it
"""

import argparse
import re
from pathlib import Path

from facts import Facts

LINE = "SPDX-License-Identifier: Apache-2.0"
COMMENTS = [  # (file names, how a comment begins)
    (re.compile(r".*\.(cpp|hpp|cu|cuh|h|inl|inc|hpp\.in)"), "//"),
    (re.compile(r".*\.(py|sh|cmake|sbatch|test|cmake\.in|pc\.in)"), "#"),
    (re.compile(r"(.*/)?(CMakeLists\.txt|bootstrap)|\.ci/run|share/(modulefiles|bash-completion|zsh)/.*"), "#"),
]
FIRST = ("#!", "#compdef", "#%Module")


def licence_line(name):
    """The line that the file of this name must have, or nothing if it is no source file."""
    return next((f"{comment} {LINE}" for names, comment in COMMENTS if names.fullmatch(name)), None)


def place(lines):
    return 1 if lines and lines[0].startswith(FIRST) else 0


def has_licence(name, lines):
    at = place(lines)
    return lines[at:at + 1] == [licence_line(name) + "\n"]


def lacking(facts):
    """(name, line to add, lines of the file) of each source file without its licence line."""
    for name in facts.own:
        wanted = licence_line(name)
        if wanted:
            lines = (facts.root / name).read_text("utf-8").splitlines(keepends=True)
            if not has_licence(name, lines):
                yield name, wanted, lines


def findings(facts):
    for name, wanted, lines in lacking(facts):
        yield f"{name}:{place(lines) + 1}: lacks the line '{wanted}'; run tests/docs/spdx.py --add"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", action="store_true", required=True, help="change the files")
    parser.parse_args()
    facts = Facts(Path(__file__).resolve().parents[2])
    for name, wanted, lines in lacking(facts):
        at = place(lines)
        (facts.root / name).write_text("".join(lines[:at] + [wanted + "\n"] + lines[at:]), encoding="utf-8")
        print(name)


if __name__ == "__main__":
    main()
