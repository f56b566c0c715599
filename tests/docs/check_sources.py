#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the source files against rules that need no compiler.

check_sources.py [--root FOLDER]
"""

import argparse
import sys
from pathlib import Path

import comments
import planted_sources
import sizes
import spdx
from facts import Facts

RULES = [planted_sources.missed, spdx.findings, sizes.findings, comments.findings]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=Path(__file__).parents[2], type=Path)
    facts = Facts(parser.parse_args().root.resolve())
    findings = [finding for rule in RULES for finding in rule(facts)]
    print("\n".join(findings) if findings else "the sources keep the rules")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
