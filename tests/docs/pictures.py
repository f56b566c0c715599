# SPDX-License-Identifier: Apache-2.0
"""Pictures that scripts draw are those that the scripts draw today."""

import runpy


def pictures(page, facts):
    if page.path.name != "README.md":
        return
    for script in sorted((facts.root / "share/doc/tessera/images").glob("*.py")):
        drawn = script.with_suffix(".svg")
        if not drawn.exists() or drawn.read_text("utf-8") != runpy.run_path(str(script))["picture"]():
            yield 1, f"{drawn.name} is not what {script.name} draws; run {script.relative_to(facts.root)}"


RULES = [pictures]
