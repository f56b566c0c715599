# SPDX-License-Identifier: Apache-2.0
"""Planted lies: each must be found, and a true page must pass. What is missed makes the test fail."""

import tempfile
from pathlib import Path

import help_texts
import markdown
import planner_tables

LIES = [  # (a paragraph of Markdown, what the finding must say)
    ("The key `training.stpes` is false.", "no key training.stpes"),
    ("```toml\n[training]\nstpes = 3\n```", "no key training.stpes"),
    ("```toml\n[training\n```", "cannot be read"),
    ("Run `tessera ckpt lst RUN`.", "ckpt has no command lst"),
    ("Run `tessera trian job.toml`.", "no command trian"),
    ("Run `tessera launch -n 8 -- trian job.toml`.", "no command trian"),
    ("Run `tessera ckpt export RUN --too W`.", "no flag --too"),
    ("<!-- not run: no -->\n```sh\ntessera train a.toml \\\n    --training.stpes 3\n```", "no key training.stpes"),
    ("See `src/nothing/here.cpp`.", "no file or folder src/nothing/here.cpp"),
    ("See `hostile_nothing_test.cpp`.", "no file hostile_nothing_test.cpp"),
    ("Set `TESSERA_NOTHING_READS_THIS`.", "nothing reads"),
    ("The function `no_such_function_anywhere` does it.", "nothing in the code"),
    ("Run `ctest -R no_such_test`.", "finds nothing"),
    ("Run `ctest -L no_such_label`.", "finds nothing"),
    ("Run `cmake --preset nothing`.", "no preset nothing"),
    ("Run `./bootstrap fly`.", "does not know fly"),
    ("See [this](nowhere.md).", "leads nowhere"),
    ("See [this](#no-such-heading).", "no heading"),
    ("```\ntrue\n```", "needs a language"),
    ("```sh\ntrue\n```", "needs `sh run`"),
    ("The room is left out.", "say component"),
    ("The step is left out.", "say skipped"),
    (" ".join(["word"] * 26) + ".", "26 words"),
    ("x" * 101, "101 columns"),
    ("Of TorchTitan's 149 keys, 1 have no effect.", "1 of TorchTitan's keys"),
]
PAGES = [  # (name of the page, its text, what the finding must say)
    ("metrics.md", "| name | meaning |\n|---|---|\n| `no/such` | false |", "nothing writes the metric no/such"),
    ("metrics.md", "Nothing.", "lacks the metric time/communication"),
    ("environment.md", "Nothing.", "reads TESSERA_CPU"),
    ("environment.md", "Nothing.", "reads TESSERA_SRUN_MPI"),
    ("environment.md", "| `TESSERA_WITH_CUDA` | false |", "no source or script reads TESSERA_WITH_CUDA"),
    ("exit-codes.md", "Nothing.", "the exit code 75 is not listed"),
    ("pipelines.md", "| schedule |\n|---|\n| 2F2B |", "pipeline_parallel_schedule cannot be 2F2B"),
    ("pipelines.md", "Nothing.", "the table lacks ZBH1"),
    ("models.md", "| `model.name` |\n|---|\n| `llama3` |", "the table lacks gpt_oss"),
    ("from-torchtitan.md", "Nothing.", "lacks the tables"),
    ("from-torchtitan.md", "| refused |\n|---|\n\n| no effect |\n|---|", "the keys have changed"),
    ("README.md", "| command | purpose |\n|---|---|\n| `trian` | false |", "has no command trian"),
    ("README.md", "Nothing.", "the table of commands lacks train"),
    ("README.md", "Nothing.", "the table that the planner prints is missing"),
    ("README.md", planner_tables.BEGIN + "| model |\n" + planner_tables.END, "the planner prints another table"),
    ("performance.md", planner_tables.BEGIN + "| key |\n" + planner_tables.END, "the planner prints another table"),
    ("README.md", "Nothing.", "README's table lacks the rows"),
    ("CONTRIBUTING.md", "| 1 | `base`, `bass` |", "unknown ['bass']"),
    ("CONTRIBUTING.md", "| 1 | `base`, `comm` |", "component comm is on level 2"),
    ("INSTALL.md", "| `TESSERA_CPU` | OFF | false |", "declares no option TESSERA_CPU"),
    ("INSTALL.md", "| `TESSERA_FUZZ` | ON | false |", "default of TESSERA_FUZZ is OFF"),
    ("INSTALL.md", "Nothing.", "lacks TESSERA_FUZZ"),
    ("INSTALL.md", "The components are `base` and `bass`.", "unknown ['bass']"),
]
TRUTH = """# A heading

See [above](#a-heading) and `training.steps`. The file is `src/app/main.cpp`.

- `tessera ckpt export RUN --to W` and `tessera launch -n 8 -- train FILE --compile.no_enable`.
- Run `ctest -R docs_test` or `./bootstrap test`.

<!-- not run: there is nothing to do -->
```sh
tessera train job.toml --training.steps 3
```
"""
SOURCE = 'log("a plain text");\n// "a room in a comment"\nfail(code, "the step was "\n     "left out");\n'


def findings_in(text, facts, findings_of, name="planted.md"):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text, encoding="utf-8")
        return [what for _, what in findings_of(path, facts)]


def missed(facts, findings_of):
    for name, text, wanted in [("planted.md", *lie) for lie in LIES] + PAGES:
        if not any(wanted in what for what in findings_in(text, facts, findings_of, name)):
            yield f"planted.py: not found: {wanted!r} in {text[:60]!r}"
    for what in findings_in(TRUTH, facts, findings_of):
        yield f"planted.py: found in a true page: {what}"
    if [literal for _, literal in help_texts.literals_of(SOURCE)] != ["a plain text", "the step was left out"]:
        yield f"planted.py: string literals are read as {list(help_texts.literals_of(SOURCE))}"
    if markdown.anchor_of("## `tessera` in *two* lines, or [one](x.md)") != "tessera-in-two-lines-or-one":
        yield "planted.py: anchors are not those of GitHub"
