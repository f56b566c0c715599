#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases in .test files: command lines with their expected exit code and output.

  cli_test.py [--tessera PROGRAM] [--case TEXT] [--keep] FILE...

Each case runs in a temporary folder of its own. TESTING.md describes the format.
"""
import argparse
import difflib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
DEFAULT_TIMEOUT_SECONDS = 120
EXPECTATION = re.compile(r"(out|err)([:=~!])\s*(\S.*)")
FIGURE = re.compile(r"\{(\S+) \+- ([^%}\s]+)(%?)\}")
NUMBER = r"[-+]?(?:[0-9][0-9_,]*\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"


class Malformed(Exception):
    """The .test file itself is wrong."""


def squeeze(text):
    """Runs of blanks count as one, so that a column's width is no part of an expectation."""
    return " ".join(text.split())


def to_number(text):
    return float(re.sub("[_,]", "", text))


class Expectation:
    """One line `out: TEXT`: its stream, how it compares (one of `:=~!`), and its text."""

    def __init__(self, stream, how, text):
        self.stream, self.how, self.text = stream, how, text
        self.label = f"{stream}{how} {text}"
        self.figures = []  # (value, tolerance) of each {VALUE +- TOLERANCE}
        self.pattern = re.compile(self._regex())

    def _regex(self):
        text, literal = (self.text, str) if self.how == "~" else (squeeze(self.text), re.escape)
        regex, end = "", 0
        for figure in FIGURE.finditer(text):
            value, tolerance = to_number(figure[1]), to_number(figure[2])
            self.figures.append((value, abs(value) * tolerance / 100 if figure[3] else tolerance))
            regex += literal(text[end:figure.start()]) + f"(?P<figure{len(self.figures)}>{NUMBER})"
            end = figure.end()
        regex += literal(text[end:])
        return f"^{regex}$" if self.how == "=" else regex

    def matches(self, line):
        match = self.pattern.search(line if self.how == "~" else squeeze(line))
        return bool(match) and all(abs(to_number(match[f"figure{i}"]) - value) <= tolerance
                                   for i, (value, tolerance) in enumerate(self.figures, 1))

    def problem(self, output):
        """What is wrong with the output's lines, or an empty string."""
        found = [line for line in output if self.matches(line)]
        if self.how == "!":
            return f"  unexpected {self.label}\n  found      {found[0]}\n" if found else ""
        if found:
            return ""
        nearest = difflib.get_close_matches(self.text, output, 1, 0.3)
        return f"  - expected {self.label}\n" + "".join(f"  + nearest  {self.stream}: {line}\n" for line in nearest)


@dataclass
class Step:
    """A file to write (`write`), or a command with what it must do."""
    line: int
    command: str = ""
    exit: str = "0"
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    expectations: list = field(default_factory=list)
    write: Path = None
    content: list = field(default_factory=list)


@dataclass
class Case:
    name: str
    line: int
    steps: list = field(default_factory=list)


class Parser:
    """Reads the cases of one file; each kind of line has one method."""

    def __init__(self, text):
        self.cases, self.number = [], 0
        self.lines = text.splitlines()
        while self.number < len(self.lines):
            self._take(self._next())

    def _next(self):
        self.number += 1
        return self.lines[self.number - 1]

    def _take(self, line):
        if not line.strip() or line.startswith("#"):
            return
        keyword, _, rest = line.partition(" ")
        expectation = EXPECTATION.fullmatch(line)
        if keyword == "case" and rest:
            self.cases.append(Case(rest, self.number))
        elif keyword == "file" and rest:
            self._add(Step(self.number, write=Path(rest), content=self._indented()))
        elif keyword == "$" and rest:
            self._add(Step(self.number, self._continued(rest)))
        elif expectation:
            self._command().expectations.append(self._expectation(*expectation.groups()))
        elif keyword == "exit" and re.fullmatch(r"[0-9]+|nonzero", rest):
            self._command().exit = rest
        elif keyword == "timeout" and re.fullmatch(r"[0-9]+", rest):
            self._command().timeout = float(rest)
        else:
            self._fail("a line begins with case, file, $, exit, timeout, out or err, followed by its value")

    def _add(self, step):
        if not self.cases:
            self._fail("the first line must be 'case NAME'")
        self.cases[-1].steps.append(step)

    def _command(self):
        if not self.cases or not self.cases[-1].steps or not self.cases[-1].steps[-1].command:
            self._fail("an expectation stands below its command ('$ COMMAND')")
        return self.cases[-1].steps[-1]

    def _expectation(self, *parts):
        try:
            return Expectation(*parts)
        except (re.error, ValueError) as error:
            self._fail(str(error))

    def _continued(self, command):
        while command.endswith("\\") and self.number < len(self.lines):
            command = command[:-1] + self._next().lstrip()
        return command

    def _indented(self):
        content = []
        while self.number < len(self.lines) and (not self.lines[self.number] or self.lines[self.number][:2] == "  "):
            content.append(self._next()[2:])
        while content and not content[-1]:
            content.pop()
        return content

    def _fail(self, reason):
        raise Malformed(f"line {self.number}: {reason}: {self.lines[self.number - 1]!r}")


def environment(tessera, folder):
    """The commands find `tessera` and $TESTS; nothing of the user's settings reaches them."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "OMPI_", "PMIX_"))}
    return {"OMP_NUM_THREADS": "1", **mine, "HOME": str(folder), "TESTS": str(TESTS), "LC_ALL": "C.UTF-8",
            "PATH": f"{tessera.parent}:{os.environ['PATH']}"}


def run(command, folder, variables, timeout):
    """Exit code (128 + N after signal N, as a shell reports it; None at the time limit) and the two streams."""
    process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=variables, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    code = None
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    except subprocess.TimeoutExpired:
        out, err = end(process)
    return code, {"out": lines_of(out), "err": lines_of(err)}


def end(process):
    """Ends a command and its ranks: first so that mpirun can end them itself."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, sign)
        try:
            return process.communicate(timeout=10)
        except subprocess.TimeoutExpired as expired:
            streams = expired.output or b"", expired.stderr or b""
    return streams


def lines_of(stream):
    return stream.decode(errors="replace").splitlines()


def problems(step, code, streams):
    """What the command did otherwise than expected, one line or a diff of two for each."""
    wrong = ""
    if code is None:
        wrong = f"  did not end within {step.timeout:.0f} s (line 'timeout SECONDS' sets the limit)\n"
    elif code == 0 if step.exit == "nonzero" else code != int(step.exit):
        wrong = f"  - expected exit {step.exit}\n  + got      exit {code}\n"
    return wrong + "".join(e.problem(streams[e.stream]) for e in step.expectations)


def shown(streams):
    text = ""
    for stream, title in (("out", "standard output"), ("err", "standard error")):
        text += f"  {title}:{'' if streams[stream] else ' empty'}\n"
        text += "".join(f"    | {line}\n" for line in streams[stream][-60:])
    return text


def run_case(case, path, tessera, folder):
    """Empty, or why the case failed. The first command that goes wrong ends it."""
    variables = environment(tessera, folder)
    for step in case.steps:
        if step.write:
            (folder / step.write).parent.mkdir(parents=True, exist_ok=True)
            (folder / step.write).write_text("\n".join(step.content) + "\n")
            continue
        code, streams = run(step.command, folder, variables, step.timeout)
        wrong = problems(step, code, streams)
        if wrong:
            return f"{path}:{step.line}: {case.name}\n  $ {step.command}\n{wrong}{shown(streams)}"
    return ""


def run_file(path, options):
    """How many cases of the file ran, and how many failed."""
    try:
        cases = Parser(path.read_text()).cases
    except Malformed as error:
        sys.exit(f"{path}: {error}")
    chosen = [case for case in cases if options.case in case.name]
    failed = 0
    for case in chosen:
        folder = Path(tempfile.mkdtemp(prefix="tessera-cli-"))
        reason = run_case(case, path, options.tessera, folder)
        print(f"{'FAILED' if reason else 'ok    '} {case.name}\n{reason}", end="", flush=True)
        failed += bool(reason)
        if options.keep:
            print(f"  kept: {shlex.quote(str(folder))}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return len(chosen), failed


def main():
    parser = argparse.ArgumentParser(description="Runs the cases in .test files.")
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--tessera", type=Path, default=TESTS.parent / "build/bin/tessera", help="the program to test")
    parser.add_argument("--case", default="", metavar="TEXT", help="only cases whose name contains this")
    parser.add_argument("--keep", action="store_true", help="keep the cases' folders")
    options = parser.parse_args()
    options.tessera = options.tessera.resolve()
    if not os.access(options.tessera, os.X_OK):
        sys.exit(f"{options.tessera} is no program; build it, or name it with --tessera")
    counts = [run_file(path, options) for path in options.files]
    ran, failed = (sum(column) for column in zip(*counts))
    print(f"{ran - failed} of {ran} cases passed")
    sys.exit(failed != 0 or ran == 0)


if __name__ == "__main__":
    main()
