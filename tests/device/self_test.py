#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The bookkeeping of first_hour.sh: results.jsonl and the tables of gpu-results.md."""
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent.parent / "share/doc/tessera/gpu-results.md"
sys.path.insert(0, str(HERE))
from record import catalogue, said  # noqa: E402


def call(script, *arguments):
    return subprocess.run([sys.executable, HERE / script, *map(str, arguments)], capture_output=True, text=True)


class Bookkeeping(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = Path(self.scratch.name)
        self.results, self.page = self.folder / "results.jsonl", self.folder / "page.md"

    def tearDown(self):
        self.scratch.cleanup()

    def ran(self, part, name, code, log):
        (self.folder / "log").write_text(log)
        done = call("record.py", "add", self.results, part, "cuda", "ran", name, code, 7, self.folder / "log", "echo", "hello")
        self.assertEqual(done.returncode, 0, done.stderr)

    def tables(self):
        done = call("render.py", "--document", self.page, self.results)
        self.assertEqual(done.returncode, 0, done.stderr)
        return self.page.read_text()

    def test_nothing_ran(self):
        self.assertEqual(self.tables().count("not run yet"), len(catalogue()))

    def test_a_value_and_a_command(self):
        self.ran("f", "bandwidth.kernels", 0, "@ copy: 4321.5 GB/s\n@ copy f32, share: 1.000 of the copy\n")
        text = self.tables()
        self.assertIn("| passed, 7 s |", text)
        self.assertIn("| `bandwidth.kernels`: copy | 4,322 | GB/s |", text)
        self.assertIn("| `echo hello` |", text)

    def test_failures_stay(self):
        self.ran("a", "sanitizer.memcheck", 9, "fine\n========= Invalid __global__ read of size 4\nlast\n")
        self.ran("c", "gradients.rows", 124, "still running\n")
        text = self.tables()
        self.assertIn("**failed**, exit code 9, 7 s: ========= Invalid __global__ read of size 4", text)
        self.assertIn("**timed out**", text)
        self.assertEqual(call("record.py", "count", self.results, "a").returncode, 1)

    def test_a_failure_says_why(self):
        log = ("    dlopen error: pmix_mca_pcompress_zlib.so: undefined symbol: pmix_output_info\n\x1b[0;32m[==========] \x1b[mRunning 1 test\n"
               "row_test.cpp:12: Failure\nExpected: (a) <= (b), actual: 2 vs 1\n\x1b[0;31m[  FAILED  ] \x1b[mRow.IsShort (3 ms)\n"
               + "-" * 74 + "\nmpirun detected that one or more processes exited with non-zero status, thus causing\n  Exit code:    1\n")
        self.assertEqual(said(log)[:2], ["row_test.cpp:12: Failure: Expected: (a) <= (b), actual: 2 vs 1", "[  FAILED  ] Row.IsShort (3 ms)"])

    def test_a_filter_that_matches_nothing_fails(self):
        self.ran("c", "gradients.rows", 0, "\x1b[0;32m[  PASSED  ] \x1b[m0 tests.\n")
        self.assertEqual(call("record.py", "passed", self.results, "gradients.rows").returncode, 1)
        self.ran("c", "gradients.rows", 0, "[  PASSED  ] 10 tests.\n")
        self.assertEqual(call("record.py", "passed", self.results, "gradients.rows").returncode, 0)

    def test_a_failure_names_files_of_the_checkout(self):
        root = HERE.parent.parent
        self.ran("c", "gradients.rows", 1, f"{root}/tests/a_test.cpp:5: Failure\nfor a reason\n")
        text = self.tables()
        self.assertIn(": tests/a_test.cpp:5: Failure: for a reason", text)
        self.assertNotIn(str(root), text)

    def test_what_cannot_run(self):
        call("record.py", "add", self.results, "b", "cuda", "impossible", "nccl.mesh.2", 0, 0, "NCCL is too old")
        self.assertIn("not possible: NCCL is too old", self.tables())

    def test_the_last_result_stands(self):
        self.ran("c", "gradients.rows", 1, "")
        self.assertEqual(call("record.py", "passed", self.results, "gradients.rows").returncode, 1)
        self.ran("c", "gradients.rows", 0, "")
        self.assertEqual(call("record.py", "passed", self.results, "gradients.rows").returncode, 0)
        self.assertNotIn("failed", self.tables())

    def test_kinds_of_gpus_are_kept_side_by_side(self):
        keep = self.folder / "keep"
        for gpu, rate in (("NVIDIA H100 80GB HBM3", 3000), ("NVIDIA H200", 4200), ("NVIDIA H100 80GB HBM3", 2900)):
            self.results.write_text(f'{{"device": "cuda", "gpu": "{gpu}", "tessera": "tessera 0.1.0 (0123abcd)"}}\n')
            self.ran("f", "bandwidth.kernels", 0, f"@ copy: {rate} GB/s\n")
            done = call("render.py", "--document", self.page, "--keep", keep, self.results)
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in keep.iterdir()), ["h100-80gb-hbm3.jsonl", "h200.jsonl"])
        text = self.page.read_text()
        self.assertRegex(text, r"\| bandwidth.kernels \| [-0-9 :]+, 0123abcd \|")
        self.assertIn("| value | NVIDIA H200 | NVIDIA H100 80GB HBM3 | unit |", text)
        self.assertIn("| `bandwidth.kernels`: copy | 4,200 | 2,900 | GB/s |", text)

    def test_the_document_shows_what_is_kept(self):
        self.page.write_text(DOCUMENT.read_text())
        done = call("render.py", "--document", self.page, "--keep", HERE / "results")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.page.read_text(), DOCUMENT.read_text())

    def test_parts_are_complete_when_all_ran(self):
        self.assertEqual(call("record.py", "count", self.results, "f").returncode, 1)
        for name in [name for name, (part, _) in catalogue().items() if part == "f"]:
            self.assertEqual(call("record.py", "count", self.results, "f").returncode, 1)
            self.ran("f", name, 0, "")
        self.assertEqual(call("record.py", "count", self.results, "f").returncode, 0)

    def test_an_unknown_measurement_is_refused(self):
        self.assertNotEqual(call("record.py", "add", self.results, "a", "cuda", "impossible", "typo", 0, 0, "").returncode, 0)

    def test_words_around_the_tables_stay(self):
        self.tables()
        self.page.write_text(self.page.read_text().replace("# Results on GPUs", "# My results") + "after\n")
        text = self.tables()
        self.assertTrue(text.startswith("# My results") and text.endswith("after\n"))
        self.assertEqual(text.count("## NCCL"), 1)

    def test_the_document_has_every_measurement(self):
        text = DOCUMENT.read_text()
        for part, what in catalogue().values():
            self.assertIn(f"| {what} |", text)
        self.assertEqual({part for part, _ in catalogue().values()}, set("abcdefg"))

    def test_the_packed_environment_leaves_variables_alone(self):
        for name in ("bin", "openmpi/bin", "torch", "nvidia/nccl/lib"):
            (self.folder / name).mkdir(parents=True)
        for name in ("bin/tessera", "openmpi/bin/mpirun", "torch/__init__.py"):
            (self.folder / name).touch()
        text = (HERE / "pack.sh").read_text()
        (self.folder / "env.sh").write_text(text.partition("<<'ENV'\n")[2].partition("\nENV\n")[0])
        script = "set -eu; device=a out=b root=c part=d; . ./env.sh; echo $device $out $root $part $LD_LIBRARY_PATH; command -v tessera"
        done = subprocess.run(["bash", "-c", script], cwd=self.folder, capture_output=True, text=True,
                              env=os.environ | {"PYTHONPATH": str(self.folder)})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("a b c d "), done.stdout)
        self.assertIn(f"{self.folder}/torch/lib:{self.folder}/nvidia/nccl/lib:", done.stdout)
        self.assertTrue(done.stdout.endswith(f"{self.folder}/bin/tessera\n"), done.stdout)

    def test_the_script_refuses_what_it_does_not_know(self):
        done = subprocess.run([HERE / "first_hour.sh", "--part", "z"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)


if __name__ == "__main__":
    unittest.main()
