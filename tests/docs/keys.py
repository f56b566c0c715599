#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes share/doc/tessera/reference/keys.md, and the tables of from-torchtitan.md, from the table of keys.

keys.py --tessera PROGRAM
"""

import argparse
import json
import subprocess
from pathlib import Path

from facts import output_of

PAGE = "share/doc/tessera/reference/keys.md"
TORCHTITAN = "share/doc/tessera/from-torchtitan.md"
HEAD = """# Keys of a job file

Every key is also a flag: `--section.key VALUE`. A key with a star is Tessera's own; the others are
those of TorchTitan v0.2.2. A list is `a,b` as a flag, or `'["a", "b"]'` as in a file; a list of
lists is `a,b;c`. After installation, `man tessera-config` describes the keys, too.

This page is generated from `src/config/options`. After a change there, run
`tests/docs/keys.py --tessera build/bin/tessera`.
"""
SUPPORT = {"harmless": "No effect.", "refused": "Refused."}


def cell(text):
    return text.replace("|", "\\|")


def values(option):
    """What the key may be."""
    words = [f"`{value}`" for value in option["allowed"]] or [option["type"]]
    return ", ".join(words + (["none"] if option["optional"] else []))


def meaning(option):
    """The help, and what is not supported."""
    parts = [option["help"] + "."]
    if option["support"] != "acts" and option["works_with"]:
        parts.append(f"Works only with {', '.join(f'`{value}`' for value in option['works_with'])}: {option['why']}.")
    elif option["support"] != "acts":
        reason = option["why"] or (f"with `{option['with']}`" if option["with"] else "")
        parts.append(SUPPORT[option["support"]][:-1] + (f": {reason}." if reason else "."))
    if option["aliases"]:
        parts.append(f"Also {', '.join(f'`{name}`' for name in option['aliases'])}.")
    if option["short_flag"]:
        parts.append(f"Short: `{option['short_flag']}`.")
    return " ".join(part.replace("..", ".") for part in parts)


def page(options):
    lines, section = [HEAD], ""
    for option in options:
        first, _, rest = option["key"].partition(".")
        if first != section:
            section = first
            lines.append(f"\n## [{section}]\n\n| key | values | default | meaning |\n|---|---|---|---|\n")
        star = "*" if option["ours"] else ""
        lines.append(f"| `{rest}`{star} | {cell(values(option))} | `{cell(option['default'])}` | {cell(meaning(option))} |\n")
    return "".join(lines)


def with_tables(text, tables):
    """from-torchtitan.md with the tables of what is refused and of what has no effect."""
    begin, last = text.find("| refused |"), text.find("| no effect |")
    if begin < 0 or last < begin:
        raise ValueError(f"{TORCHTITAN} lacks the tables that `tessera config keys --markdown` prints")
    end = text.find("\n\n", last)
    return text[:begin] + tables + (text[end + 1:] if end >= 0 else "")


def printed_tables(tessera):
    return output_of(tessera, "config", "keys", "--markdown")


def up_to_date(page_of, facts):
    """A rule of check_docs.py."""
    text = page_of.path.read_text("utf-8")
    try:
        whole = (page_of.path.name != "keys.md" or text == page(facts.options)) and (
            page_of.path.name != "from-torchtitan.md" or text == with_tables(text, printed_tables(facts.tessera)))
        if not whole:
            yield 1, "the keys have changed; run tests/docs/keys.py --tessera build/bin/tessera"
    except ValueError as error:
        yield 1, str(error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    args = parser.parse_args()
    keys = subprocess.run([args.tessera, "config", "keys", "--json"], check=True, text=True, stdout=subprocess.PIPE)
    root = Path(__file__).resolve().parents[2]
    (root / PAGE).write_text(page(json.loads(keys.stdout)), encoding="utf-8")
    torchtitan = root / TORCHTITAN
    text = torchtitan.read_text("utf-8")
    torchtitan.write_text(with_tables(text, printed_tables(args.tessera)), encoding="utf-8")


RULES = [up_to_date]

if __name__ == "__main__":
    main()
