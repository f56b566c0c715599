#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the device sources on purpose and demands that a named test finds it.

  run.py --build DIR [NAME...]     all patches of this folder, or these; exits with 1 if one was not found
  run.py --check [NAME...]         only sees that each patch applies to the sources

A patch NAME.patch begins with a header, one `key: value` a line, and goes on with a unified diff against the
sources:

  what:   the fault, for the report
  test:   the ctest name that must fail
  filter: optional: cases of that test, as GoogleTest's filter
  words:  a regular expression that the output must contain, so that the test fails for the right reason; repeatable,
          all are wanted

Each patch changes a copy of the sources. The shared libraries of DIR that contain the changed files are linked once
more beside DIR, from DIR's own commands, and the test preloads them. DIR stays as it is. The test must pass without
the patch.
"""

import argparse
import dataclasses
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parents[2]
FOLDERS = ("src", "include", "mesh", "checkpoint", "tests/sim")
PRELOADS = ("LD_PRELOAD", "TESSERA_SIM_PRELOAD")


class Failure(Exception):
    """A patch that cannot be tried, or was not found."""


@dataclasses.dataclass
class Patch:
    path: pathlib.Path
    what: str = ""
    test: str = ""
    filter: str = ""
    words: list = dataclasses.field(default_factory=list)
    files: list = dataclasses.field(default_factory=list)

    @property
    def name(self):
        return self.path.stem


def read_patch(path):
    patch = Patch(path)
    for line in path.read_text().splitlines():
        if line.startswith("+++ b/"):
            patch.files.append(line[len("+++ b/"):].split("\t")[0])
            continue
        key, colon, value = line.partition(":")
        if patch.files or not colon or line.startswith(("---", "diff ")):
            continue
        if key == "words":
            patch.words.append(value.strip())
        elif key in ("what", "test", "filter"):
            setattr(patch, key, value.strip())
        else:
            raise Failure(f"{path.name}: unknown key \"{key}\" in the header")
    if not (patch.what and patch.test and patch.words and patch.files):
        raise Failure(f"{path.name}: it needs what, test, words and a diff with \"+++ b/FILE\" lines")
    return patch


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          check=False, **options)


class Tree:
    """A copy of the sources. Files keep their times, which precompiled headers are compared by."""

    def __init__(self, root):
        self.root = root
        for folder in FOLDERS:
            shutil.copytree(SOURCE / folder, root / folder)

    def apply(self, patch):
        done = run(["git", "apply", str(patch.path)], cwd=self.root)
        if done.returncode != 0:
            raise Failure(f"the patch does not apply; make it anew:\n{done.stdout}")

    def restore(self, patch):
        for file in patch.files:
            shutil.copy2(SOURCE / file, self.root / file)


class Build:
    """What ninja would do in the build directory."""

    def __init__(self, folder):
        self.folder = folder
        self.commands = {}
        for entry in json.loads(self.ninja("-t", "compdb")):
            self.commands.setdefault(entry["output"], entry)
        self.users = {}
        output = None
        for line in self.ninja("-t", "deps").splitlines():
            if not line.startswith(" "):
                output = line.partition(":")[0]
            elif line.strip():
                self.users.setdefault(self.absolute(line.strip()), set()).add(output)

    def ninja(self, *arguments):
        return subprocess.run(["ninja", "-C", str(self.folder), "--quiet", *arguments], stdout=subprocess.PIPE, text=True,
                              check=True).stdout

    def absolute(self, name):
        return os.path.normpath(self.folder / name)

    def objects_of(self, file):
        return {o for o in self.users.get(str(SOURCE / file), ()) if o in self.commands and o.endswith(".o")}

    def libraries_of(self, objects):
        """Shared libraries that were built and contain one of these objects."""
        for output, entry in self.commands.items():
            name = pathlib.Path(output).name
            if name.startswith("lib") and ".so" in name and " -shared " in entry["command"]:
                words = set(shlex.split(entry["command"]))
                if words & objects and (self.folder / output).exists():
                    yield output, entry["command"], words & objects


class Mutant:
    """The libraries of a changed tree."""

    def __init__(self, build, tree, folder):
        self.build, self.tree, self.folder = build, tree, folder
        self.objects = {}

    def compile(self, name):
        if name in self.objects:
            return self.objects[name]
        entry = self.build.commands[name]
        made = self.folder / f"{len(self.objects)}-{pathlib.Path(name).name}"
        command = self.in_tree(entry["command"]).replace(f"-o {name}", f"-o {made}")
        file = pathlib.Path(self.build.absolute(entry["file"]))
        if file.name.startswith("unity_"):  # a file of the build's that includes sources by their paths
            copy = self.folder / f"{len(self.objects)}-{file.name}"
            copy.write_text(self.in_tree(file.read_text()))
            command = command.replace(str(file), str(copy))
        self.shell(command, f"compile {name}")
        self.objects[name] = str(made)
        return str(made)

    def in_tree(self, text):
        for folder in FOLDERS:
            text = text.replace(f"{SOURCE}/{folder}/", f"{self.tree.root}/{folder}/")
            text = text.replace(f"{SOURCE}/{folder} ", f"{self.tree.root}/{folder} ")
        return text

    def shell(self, command, what):
        done = run(command, shell=True, cwd=self.build.folder)
        if done.returncode != 0:
            raise Failure(f"cannot {what}:\n{done.stdout[-3000:]}")

    def link(self, output, command, objects):
        made = self.folder / pathlib.Path(output).name
        words = [self.compile(w) if w in objects else w for w in shlex.split(command.split("&&")[1])]
        words[words.index("-o") + 1] = str(made)
        self.shell(shlex.join(words), f"link {output}")
        return str(made)


def test_of(build, name):
    """Command, environment and time limit of a ctest test."""
    shown = run(["ctest", "--test-dir", str(build), "--show-only=json-v1", "-R", f"^{name.replace('.', '[.]')}$"])
    tests = json.loads(shown.stdout[shown.stdout.index("{"):])["tests"]
    if not tests:
        raise Failure(f"there is no test {name} in {build}")
    properties = {p["name"]: p["value"] for p in tests[0]["properties"]}
    environment = dict(line.split("=", 1) for line in properties.get("ENVIRONMENT", []))
    return tests[0]["command"], environment, properties.get("TIMEOUT", 600)


def run_test(build, patch, libraries):
    """Exit code and output of a patch's test with these libraries, by the paths that they stand for."""
    command, environment, limit = test_of(build, patch.test)
    if patch.filter:
        command = [w for w in command if not w.startswith("--gtest_filter=")] + [f"--gtest_filter={patch.filter}"]
    preload = next((p for p in PRELOADS if p in environment), "LD_PRELOAD")
    loaded = [libraries.pop(p, p) for p in environment.get(preload, "").split(":") if p]
    command = [libraries.pop(word, word) for word in command]
    environment[preload] = ":".join([*loaded, *libraries.values()])
    try:
        done = run(command, env={**os.environ, **environment}, timeout=limit, cwd=build)
    except subprocess.TimeoutExpired as late:
        return "no end", str(late.output)
    return done.returncode, done.stdout


def try_patch(patch, build, tree, work):
    folder = work / patch.name
    folder.mkdir()
    tree.apply(patch)
    try:
        mutant = Mutant(build, tree, folder)
        objects = set().union(*(build.objects_of(f) for f in patch.files))
        libraries = {build.absolute(o): mutant.link(o, c, objects) for o, c, objects in build.libraries_of(objects)}
        if not libraries:
            raise Failure(f"no shared library of {build.folder} contains {', '.join(patch.files)}")
        code, output = run_test(build.folder, patch, libraries)
    finally:
        tree.restore(patch)
    if code == 0:
        raise Failure(f"NOT FOUND: {patch.test} passes")
    missing = [w for w in patch.words if not re.search(w, output)]
    if missing:
        raise Failure(f"{patch.test} fails ({code}), but does not say {missing}:\n{output[-3000:]}")
    shutil.rmtree(folder)


def expect_sound_test(patch, build, known):
    key = (patch.test, patch.filter)
    if key not in known:
        known[key] = run_test(build.folder, patch, {})
    code, output = known[key]
    if code != 0:
        raise Failure(f"{patch.test} fails without the patch ({code}):\n{output[-3000:]}")
    if patch.filter and "[       OK ]" not in output:
        raise Failure(f"{patch.test} has no case {patch.filter}")


def main():
    options = argparse.ArgumentParser(description="Mutations of the device sources, each found by a test.")
    options.add_argument("--build", type=pathlib.Path)
    options.add_argument("--check", action="store_true", help="only see that the patches apply")
    options.add_argument("names", nargs="*")
    given = options.parse_args()
    if bool(given.build) == given.check:
        options.error("give --build DIR or --check")
    paths = [HERE / f"{n}.patch" for n in given.names] or sorted(HERE.glob("*.patch"))
    failures, sound = 0, {}
    with tempfile.TemporaryDirectory(prefix="tessera-mutations-") as name:
        work = pathlib.Path(name)
        tree = Tree(work / "tree")
        build = Build(given.build.resolve()) if given.build else None
        for path in paths:
            began = time.monotonic()
            try:
                patch = read_patch(path)
                if build:
                    expect_sound_test(patch, build, sound)
                    try_patch(patch, build, tree, work)
                else:
                    tree.apply(patch)
                    tree.restore(patch)
                verdict = f"found by {patch.test}" if build else "applies"
            except (Failure, OSError) as failure:
                failures += 1
                verdict = f"FAILED: {failure}"
            print(f"{path.stem}: {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(paths) - failures} of {len(paths)} mutations {'found' if build else 'apply'}")
    return failures > 0 or not paths


if __name__ == "__main__":
    sys.exit(main())
