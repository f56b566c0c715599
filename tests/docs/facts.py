# SPDX-License-Identifier: Apache-2.0
"""What exists: the program's commands, flags and keys, and the repository's files, tests, presets and variables."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

DOCUMENTS = ["README.md", "INSTALL.md", "CONTRIBUTING.md", "TESTING.md", "CHANGELOG.md", "share/man/man1/tessera.1.in"]

FOLDERS = (".ci/", "checkpoint/", "cmake/", "include/", "jobs/", "mesh/", "share/", "src/", "tests/")


def output_of(*command, **options):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60, check=False, **options)
    return done.stdout


def commands_in(help_text, above=""):
    """The names in a help text's list of commands, or in its lines of use: "tessera config show"."""
    listed = re.search(r"^commands:\n((?: .*\n?)+)", help_text, re.M | re.I)
    if listed:
        return re.findall(r"^  ([\w-]+)", listed[1], re.M)
    return re.findall(rf"^(?:Usage:)? +tessera {above} ([a-z][a-z-]*)", help_text, re.M) if above else []


def variables_in(name):
    """How a file of this name spells an environment variable; nothing if it is no source or script."""
    if name.startswith("tests/docs/") or name.startswith("tests/layers/"):
        return None
    if name.endswith((".cpp", ".hpp", ".cu")):
        foreign = r"(?:OMP|OMPI|PMIX|SLURM|ONEDNN|DNNL|CUBLAS|LC)_\w+|MPI_LOCALNRANKS|LANG|TERM|NO_COLOR"
        return re.compile(rf'(?<!include )"((?:TESSERA_[A-Z_]+{"" if name.startswith("tests/") else "|" + foreign}))"')
    if name.endswith((".sh", ".sbatch")) or name in ("bootstrap", ".ci/run", "src/sweep/script.cpp"):
        return re.compile(r"\$\{?(TESSERA_[A-Z_]+)" if name.startswith("tests/") else r"\$\{?((?:TESSERA|SWEEP)_[A-Z_]+)")
    if name.endswith((".cmake", "CMakeLists.txt")):
        return re.compile(r"\$ENV\{(TESSERA_[A-Z_]+)\}")
    return re.compile(r"environ(?:\.get)?[\[(][\"'](TESSERA_[A-Z_]+)") if name.endswith(".py") else None


class Facts:
    def __init__(self, root, tessera=None, build=None):
        self.root, self.tessera, self.build = Path(root), tessera, build and Path(build)

    @cached_property
    def documents(self):
        pages = sorted((self.root / "share/doc/tessera").rglob("*.md"))
        return [self.root / name for name in DOCUMENTS] + pages

    @cached_property
    def options(self):
        return json.loads(output_of(self.tessera, "config", "keys", "--json"))

    @cached_property
    def keys(self):
        """Keys, their other spellings, and what stands before the last dot of each."""
        return {name for option in self.options for name in (option["key"], *option["aliases"])}

    @cached_property
    def short_flags(self):
        return {option["short_flag"] for option in self.options if option.get("short_flag")}

    @cached_property
    def booleans(self):
        return {option["key"] for option in self.options if option["type"] == "boolean"}

    @cached_property
    def sections(self):
        return {key.rsplit(".", 1)[0] for key in self.keys} | {key.split(".")[0] for key in self.keys}

    def help(self, *command):
        return self.helps.get(command, "")

    @cached_property
    def helps(self):
        """The help text of the program, of each command and of each command of a command."""
        helps = {(): output_of(self.tessera, "--help")}
        level = [(name,) for name in commands_in(helps[()])]
        while level:
            with ThreadPoolExecutor(2) as pool:
                texts = list(pool.map(lambda command: output_of(self.tessera, *command, "--help"), level))
            helps.update(zip(level, texts))
            level = [(*above, name) for above, text in zip(level, texts) for name in commands_in(text, above[0])
                     if len(above) < 2]
        return helps

    @cached_property
    def tracked(self):
        """Every file of the repository, as a relative path."""
        if (self.root / ".git").exists():
            return set(output_of("git", "-C", self.root, "ls-files", "-co", "--exclude-standard").split("\n")) - {""}
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    @cached_property
    def own(self):
        """The files of the repository's folders and at its root, without build folders, sorted."""
        return sorted(name for name in self.tracked
                      if ("/" not in name or name.startswith(FOLDERS)) and (self.root / name).is_file())

    @cached_property
    def file_names(self):
        return {Path(path).name for path in self.tracked}

    @cached_property
    def identifiers(self):
        """Every word with an underscore, dot or dash that stands in the repository outside its documents."""
        found = set()
        skipped = {str(path.relative_to(self.root)) for path in self.documents}
        for name in self.tracked - skipped:
            path = self.root / name
            if name.startswith("tests/docs/") or not path.is_file():
                continue
            if path.suffix in {".cpp", ".hpp", ".cu", ".cuh", ".py", ".sh", ".cmake", ".txt", ".toml", ".in", ".json",
                               ".sbatch", ".list", ".supp", ""} and path.stat().st_size < 400_000:
                found |= set(re.findall(r"[A-Za-z_][A-Za-z0-9_]+", path.read_text("utf-8", errors="ignore")))
        return found

    @cached_property
    def cmake(self):
        """The text of each CMake file of the build, without comments."""
        return {name: re.sub(r"(^|\s)#[^\n]*", r"\1", (self.root / name).read_text("utf-8")) for name in self.own
                if name.endswith(("CMakeLists.txt", ".cmake")) and "/consumer/" not in name and "/layers/" not in name}

    @cached_property
    def declarations(self):
        """Each component: the words of each argument of its tessera_component()."""
        found = {}
        for text in self.cmake.values():
            for call in re.findall(r"^tessera_component\(([^)]*)\)", text, re.M):
                name, *words = call.split()
                argument, found[name] = "", {}
                for word in words:
                    argument = word if word.isupper() else argument
                    found[name].setdefault(argument, []).extend([] if word.isupper() else [word])
        return found

    @cached_property
    def uses(self):
        """Each component and the components that it lists under USES; the program, which may use all, is not among them."""
        return {name: arguments.get("USES", []) for name, arguments in self.declarations.items()}

    @cached_property
    def with_torch(self):
        return {name for name, arguments in self.declarations.items() if "TENSOR_SOURCES" in arguments}

    @cached_property
    def components(self):
        return set(self.uses)

    @cached_property
    def levels(self):
        """The level of each component, one above the highest that it uses; the program's is above all."""
        levels = {}
        while len(levels) < len(self.uses):
            ready = {name for name, used in self.uses.items() if name not in levels and all(one in levels for one in used)}
            if not ready:
                raise ValueError(f"these components use each other: {sorted(self.uses.keys() - levels.keys())}")
            levels |= {name: 1 + max([levels[one] for one in self.uses[name]], default=0) for name in ready}
        return levels | {"app": 1 + max(levels.values())}

    @cached_property
    def build_options(self):
        """Each TESSERA_* option of CMake and its default; what CMake itself finds has none."""
        found = {}
        for text in self.cmake.values():
            found |= dict(re.findall(r'^ *option\((TESSERA_\w+) +"[^"]*" +(\S+)\)', text, re.M))
            found |= dict(re.findall(r'^ *set\((TESSERA_\w+) +(\S+) +CACHE (?:BOOL|STRING|PATH|FILEPATH) ', text, re.M))
        return found

    @cached_property
    def environment(self):
        """Environment variables that sources and scripts read or set, with the first file that does so."""
        found = {}
        for name in self.own:
            pattern = variables_in(name)
            for variable in pattern.findall((self.root / name).read_text("utf-8")) if pattern else []:
                found.setdefault(variable, name)
        return found

    @cached_property
    def tests(self):
        return set(re.findall(r"Test +#\d+: (\S+)", output_of("ctest", "-N", cwd=self.build)))

    @cached_property
    def labels(self):
        return set(re.findall(r"^  (\S+)", output_of("ctest", "--print-labels", cwd=self.build), re.M))

    @cached_property
    def presets(self):
        text = (self.root / "CMakePresets.json").read_text("utf-8")
        return set(re.findall(r'"name": "([\w-]+)"', text))

    @cached_property
    def bootstrap_help(self):
        return output_of(self.root / "bootstrap", "--help")
