# SPDX-License-Identifier: Apache-2.0
"""Pictures are what scripts, and the program, draw today; and pages show each of them."""

import re
import runpy
import tempfile
from pathlib import Path

from facts import output_of

IMAGES = "share/doc/tessera/images"
LIBRARIES = ("curves.py", "drawing.py")  # what the scripts draw with
SCHEDULES = {  # file: arguments of `tessera schedule`
    "1f1b.svg": ["1F1B", "--ranks", "4", "--microbatches", "8"],
    "zbv.svg": ["ZBVZeroBubble", "--ranks", "4", "--microbatches", "8"],
}
RECIPES = "share/tessera/recipes"
PLANS = {  # file: recipe and arguments of `tessera plan`
    "memory.svg": ("llama3_8b", "memory", ["--gpus", "8", "--parallelism.pipeline_parallel_degree", "4"]),
    "roofline.svg": ("llama3_8b", "roofline", ["--gpus", "8"]),
    "scaling.svg": ("llama3_8b", "scaling", ["--gpus", "64"]),
    "timeline.svg": ("llama3_8b", "timeline", ["--gpus", "64", "--parallelism.pipeline_parallel_degree", "4"]),
}


def drawn_by_scripts(page, facts):
    if page.path.name != "README.md":
        return
    for script in sorted((facts.root / IMAGES).glob("*.py")):
        drawn = script.with_suffix(".svg")
        if script.name in LIBRARIES:
            continue
        if not drawn.exists() or drawn.read_text("utf-8") != runpy.run_path(str(script))["picture"]():
            yield 1, f"{drawn.name} is not what {script.name} draws; run {script.relative_to(facts.root)}"


def drawn_by_the_program(page, facts):
    if page.path.name != "pipelines.md":
        return
    for name, arguments in SCHEDULES.items():
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / name
            output_of(facts.tessera, "schedule", *arguments, "--out", made)
            if not made.exists() or made.read_text("utf-8") != (facts.root / IMAGES / name).read_text("utf-8"):
                yield 1, f"{name} is not up to date; run tessera schedule {' '.join(arguments)} --out {IMAGES}/{name}"


def planned(page, facts):
    if page.path.name != "planner.md":
        return
    for name, (recipe, kind, arguments) in PLANS.items():
        words = ["plan", f"{RECIPES}/{recipe}.toml", *arguments, "--picture", kind, "--out"]
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / name
            output_of(facts.tessera, words[0], facts.root / words[1], *words[2:], made)
            if not made.exists() or made.read_text("utf-8") != (facts.root / IMAGES / name).read_text("utf-8"):
                yield 1, f"{name} is not up to date; run tessera {' '.join(words)} {IMAGES}/{name}"


def shown(page, facts):
    """Each picture is on a page."""
    if page.path.name != "README.md":
        return
    texts = "".join(path.read_text("utf-8") for path in facts.documents)
    for picture in sorted((facts.root / IMAGES).glob("*.svg")):
        if not re.search(rf"!\[[^]]+\]\([^)]*images/{re.escape(picture.name)}\)", texts):
            yield 1, f"no page shows {picture.name}"


RULES = [drawn_by_scripts, drawn_by_the_program, planned, shown]
