# SPDX-License-Identifier: Apache-2.0
"""Fenced code: shell commands are run by this test ("```sh run"), or say why not (<!-- not run: REASON --> above)."""

import os
import subprocess
import tempfile

import markdown
from references import is_shell

TIME_LIMIT_SECONDS = 500
LANGUAGES = ("toml", "cmake", "cpp", "python", "text", "json")


def marks(page, facts):
    if page.path.suffix != ".md":
        return
    for block in page.of("code"):
        if not block.language or not (is_shell(block) or block.language.split()[0] in LANGUAGES):
            yield block.line, f"fenced code needs a language: sh, {', '.join(LANGUAGES)}"
        elif is_shell(block) and block.language != "sh run" and not block.comment.startswith("<!-- not run: "):
            yield block.line, "shell code needs `sh run`, or <!-- not run: REASON --> above"


def run(block, facts, folder):
    """What failed, or nothing. The program is in PATH, and one rank has one thread."""
    environment = {**os.environ, "PATH": f"{facts.tessera.parent}:{os.environ['PATH']}", "OMP_NUM_THREADS": "1"}
    script = "set -euo pipefail\n" + "\n".join(block.lines)
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, text=True,
                          timeout=TIME_LIMIT_SECONDS, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return f"ended with {done.returncode}:\n{done.stdout[-1500:]}" if done.returncode else ""


def furnish(folder, facts):
    """What the pages take for granted: the checkout's folders, and a text of one's own."""
    for name in ("share", "jobs"):
        os.symlink(facts.root / name, os.path.join(folder, name))
    with open(os.path.join(folder, "my.txt"), "w", encoding="utf-8") as text:
        text.writelines(path.read_text("utf-8") for path in facts.documents)


def run_all(facts):
    """Runs the blocks of each page in one fresh folder, in order."""
    for path in facts.documents:
        with tempfile.TemporaryDirectory() as folder:
            furnish(folder, facts)
            for block in markdown.read(path).of("code"):
                if block.language == "sh run":
                    failed = run(block, facts, folder)
                    if failed:
                        yield f"{path.name}:{block.line}: {failed}"


RULES = [marks]
