#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws decision.svg: the questions of `tessera plan --explain` as a flow chart, with the planner's answers for four jobs.

planner_chart.py --tessera PROGRAM
"""

import argparse
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PICTURE = "share/doc/tessera/images/decision.svg"
sys.path.append(str(ROOT / "share/doc/tessera/images"))

import drawing  # noqa: E402
from planner_tables import mesh_of, plan  # noqa: E402

JOBS = [("8B on 8 H100", "llama3_8b_fsdp8", 8, "h100-700w"), ("70B on 8 B200", "llama3_70b_fsdp4_tp2", 8, "b200"),
        ("70B on 256 H100", "llama3_70b", 256, "h100-700w"), ("405B on 512 H100", "llama3_405b_8x8x8", 512, "h100-700w")]
LEFT, LABEL, BOX, GAP, HEIGHT, ROW, TOP = 8, 190, 190, 14, 54, 74, 50


def lines_of(question, gpus):
    """What the box of an answer says."""
    lines = ["Yes" if question["yes"] else "No"]
    best = question.get("best")
    if best:
        return [*lines, f"{best['tokens_per_second_per_gpu']:.0f} tokens/s", mesh_of(best, gpus) or "one GPU"]
    held = re.search(r"takes ([\d.]+) GiB .* of ([\d.]+) GiB", question["why"])
    if held:
        return [*lines, f"{held[1]} of {held[2]} GiB"]
    return [*lines, re.split(r"[,;]| tokens/s", question["why"])[0].replace(" a step for", ",")]


def words_of(question):
    """A question in lines that fit beside the boxes."""
    lines = [""]
    for word in question.split():
        if len(lines[-1]) + len(word) > 27:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


def column(x, name, found, gpus):
    middle, y = x + BOX / 2, TOP
    parts = [drawing.text(middle, 32, name, "title")]
    for question in found["questions"]:
        parts += drawing.box(x, y, BOX, HEIGHT, lines_of(question, gpus), "green" if question["yes"] else "box")
        parts.append(drawing.line((middle, y + HEIGHT + 1), (middle, y + ROW - 1)))
        y += ROW
    choice = found["choice"]
    lines = [f"{choice['tokens_per_second_per_gpu']:.0f} tokens/s, {choice['memory_gib']:.1f} GiB", mesh_of(choice, gpus)]
    return parts + drawing.box(x, y, BOX, HEIGHT, lines, "blue")


def picture(tessera):
    def explained(job):
        recipe = str(ROOT / f"share/tessera/recipes/{job[1]}.toml")
        return plan(tessera, recipe, "--gpus", str(job[2]), "--machine", job[3], "--explain")["explain"]

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(explained, JOBS))
    questions = [question["question"] for question in answers[0]["questions"]] + ["The choice"]
    parts = []
    for row, question in enumerate(questions):
        lines = words_of(question)
        y = TOP + ROW * row + HEIGHT / 2 + 4.5 - 8 * (len(lines) - 1)
        parts += [drawing.text(LEFT, y + 16 * at, line, "left") for at, line in enumerate(lines)]
    for at, ((name, _, gpus, _), found) in enumerate(zip(JOBS, answers)):
        parts += column(LEFT + LABEL + at * (BOX + GAP), name, found, gpus)
    return drawing.svg(LEFT + LABEL + len(JOBS) * (BOX + GAP), TOP + ROW * len(questions),
                       "How the mesh of four jobs follows from eight questions", parts)


def up_to_date(page, facts):
    """A rule of check_docs.py."""
    if page.path.name == "planner.md" and (facts.root / PICTURE).read_text("utf-8") != picture(facts.tessera):
        yield 1, "the planner draws another decision.svg; run tests/docs/planner_chart.py --tessera build/bin/tessera"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tessera", required=True)
    (ROOT / PICTURE).write_text(picture(parser.parse_args().tessera), encoding="utf-8")


RULES = [up_to_date]

if __name__ == "__main__":
    main()
