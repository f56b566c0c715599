#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the documents, help texts and messages with what exists, and with the rules of TESTING.md.

check_docs.py --tessera PROGRAM --build FOLDER [--root FOLDER] [--run]
"""

import argparse
import os
import sys
from pathlib import Path

import features
import fenced
import help_texts
import keys
import lists
import markdown
import pictures
import planner_chart
import planner_tables
import planted
import references
import rules
from facts import Facts


def findings_of(path, facts):
    """(line, what is wrong) of one document, in the order of its lines."""
    page = markdown.read(path)
    checks = [*rules.RULES, *references.RULES, *fenced.RULES, *features.RULES,
              *lists.RULES, *pictures.RULES, *keys.RULES, *planner_chart.RULES,
              *planner_tables.RULES]
    return sorted({finding for check in checks for finding in check(page, facts)})


def all_findings(facts):
    yield from planted.missed(facts, findings_of)
    for path in facts.documents:
        for line, what in findings_of(path, facts):
            yield f"{os.path.relpath(path, facts.root)}:{line}: {what}"
    for where, what in [*help_texts.helps(facts), *help_texts.scripts(facts), *help_texts.messages(facts)]:
        yield f"{where}: {what}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tessera", required=True, type=Path)
    parser.add_argument("--build", required=True, type=Path)
    parser.add_argument("--root", default=Path(__file__).parents[2], type=Path)
    parser.add_argument("--run", action="store_true", help="run the fenced blocks that are marked so")
    args = parser.parse_args()
    facts = Facts(args.root.resolve(), args.tessera.resolve(), args.build)
    findings = list(fenced.run_all(facts) if args.run else all_findings(facts))
    print("\n".join(findings) if findings else "the documents agree with the program")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
