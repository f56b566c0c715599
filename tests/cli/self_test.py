#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cli_test.py passes what is right, and fails, readably, whatever expectation is wrong."""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

DRIVER = Path(__file__).resolve().parent / "cli_test.py"
SAY = "case c\n$ echo loss 5.25, then 1e-3; echo oops >&2\n"


def outcome(text, *flags):
    """Exit code and output of the driver for a .test file that holds `text`."""
    with tempfile.NamedTemporaryFile("w", suffix=".test") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([sys.executable, DRIVER, "--tessera", "/bin/true", *flags, file.name],
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Driver(unittest.TestCase):
    def passes(self, text, *flags):
        self.assertEqual(outcome(text, *flags)[0], 0, outcome(text, *flags)[1])

    def fails(self, text, *said):
        code, output = outcome(text)
        self.assertEqual(code, 1, output)
        for what in said:
            self.assertIn(what, output)

    def test_right_expectations_pass(self):
        for line in ("out: loss", "out= loss 5.25, then 1e-3", "out:  loss   5.25", "out~ ^loss [0-9.]+, ", "out! oops",
                     "err= oops", "err! loss", "out: loss {5.2 +- 0.1}, then {0.001 +- 1%}",
                     "out~ ^(loss|gain) {5.25 +- 0}", "exit 0"):
            self.passes(SAY + line)

    def test_wrong_expectations_fail(self):
        for line in ("out: gain", "out= loss 5.25", "out~ ^5", "out! loss", "err: loss", "err! oops", "exit 1", "exit nonzero",
                     "out: loss {5.2 +- 0.01}", "out: then {0.0011 +- 1%}", "out~ ^(loss|gain) {5.3 +- 0.01}"):
            self.fails(SAY + line)

    def test_a_failure_shows_the_difference(self):
        self.fails(SAY + "out: lost 5.25", ":2: c\n", "- expected out: lost 5.25\n", "+ nearest  out: loss 5.25, then 1e-3\n",
                   "    | loss 5.25", "    | oops", "0 of 1 cases passed")
        self.fails("case c\n$ exit 3", "- expected exit 0\n", "+ got      exit 3\n")

    def test_exit_codes(self):
        self.passes("case c\n$ exit 75\nexit 75\n$ exit 2\nexit nonzero\n$ kill -KILL $$\nexit 137")

    def test_every_case_and_every_command_counts(self):
        self.fails("case a\n$ false\ncase b\n$ true", "FAILED a", "ok     b")
        self.fails("case a\n$ true\n$ false\nexit 0\n$ true")

    def test_a_command_that_does_not_end(self):
        self.fails("case c\n$ echo begun; sleep 60\ntimeout 1", "did not end within 1 s", "| begun")

    def test_files_and_folders(self):
        self.passes("case a\nfile sub/x\n  one\n    two\n\n  three\n\n# comment\n$ cat sub/x\nout= one\nout~ ^  two\nout= three\n"
                    "case b\n$ ls -A\nout! sub")
        self.passes("case a\n$ echo one \\\n  two\nout= one two")
        self.passes("case a\n$ test -d $TESTS/golden && test $PWD = $HOME")

    def test_chosen_cases(self):
        self.passes("case good\n$ true\ncase bad\n$ false", "--case", "good")

    def test_malformed_files_are_refused(self):
        for text in ("", "$ true", "case c\nexit 0", "case c\n$ true\nexit two", "case c\n$ true\nout~ (", "case c\nfoo: x",
                     "case c\n$ true\nout: {a +- 1}", "case c\n$ true\nout:", "case c\nfile x\nexit 0"):
            self.assertNotEqual(outcome(text)[0], 0, text)
        self.fails("case c\n$ true\n out: x", "line 3: a line begins with")


if __name__ == "__main__":
    unittest.main()
