# SPDX-License-Identifier: Apache-2.0
"""Rules on names: keys, commands, flags, files, tests, presets and variables that a page names exist."""

import re
import shlex
import tomllib

import markdown

CHECKOUT_FOLDERS = ("src/", "include/", "tests/", "share/", "jobs/", "cmake/", "mesh/", "checkpoint/", ".ci/")
FILE_NAME = re.compile(r"[\w-]+\.(cpp|hpp|cmake|py|sh|sbatch|list|toml|supp|md|in|jsonl?|h5|svg|safetensors)")
NO_IDENTIFIERS = {"snake_case"}  # words about names


def names_in(page):
    """(line, name) of every code span and of every line of shell code."""
    for block in page.of("prose", "heading", "row"):
        for span in markdown.spans(block.text):
            yield block.line, span
    for block in page.of("code"):
        if is_shell(block):
            for line in shell_lines(block):
                yield block.line, line


def is_shell(block):
    return block.language.split(" ")[0] in ("", "sh", "bash", "roff")


def shell_lines(block):
    """Commands with their continuation lines joined and comments cut off."""
    joined = "\n".join(block.lines).replace("\\\n", " ")
    return [re.sub(r"\s#.*", "", line).strip() for line in joined.split("\n") if line.strip()]


def is_key(word, facts):
    if word in facts.keys or word in facts.sections:
        return True
    section, _, leaf = word.rpartition(".")
    return leaf.startswith("no_") and f"{section}.{leaf[3:]}" in facts.booleans


def keys(page, facts):
    """`section.key` and `section.key = value`."""
    first = {key.split(".")[0] for key in facts.keys}
    for line, span in names_in(page):
        found = re.fullmatch(r"([a-z_]+(?:\.[a-z0-9_]+)+)(\s*=.*)?", span)
        if found and found[1].split(".")[0] in first and not is_key(found[1], facts):
            if not FILE_NAME.fullmatch(found[1]):
                yield line, f"there is no key {found[1]}"


def toml_keys(page, facts):
    """Keys in fenced TOML: of a job, or in a sweep (`toml sweep`) of what varies."""
    for block in page.of("code"):
        if block.language.startswith("toml"):
            try:
                tree = tomllib.loads("\n".join(block.lines))
            except tomllib.TOMLDecodeError as error:
                yield block.line, f"this TOML cannot be read: {error}"
                continue
            for key in keys_of(varied(tree) if block.language == "toml sweep" else tree):
                if not is_key(key, facts):
                    yield block.line, f"there is no key {key}"


def varied(sweep):
    """The keys of a job in a sweep file; what is said of one (log, count, ...) is cut off."""
    tables = [sweep.get(name, {}) for name in ("set", "grid", "zip", "random")]
    tables = [{section: keys for section, keys in table.items() if isinstance(keys, dict)} for table in tables]
    return {f"{section}.{key}": None for table in tables for section, keys in table.items() for key in keys}


def keys_of(tree, above=""):
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from keys_of(value, f"{above}{name}.")
        else:
            yield above + name


def split_words(text):
    try:
        return shlex.split(text, posix=True)
    except ValueError:
        return []


def commands(page, facts):
    """`tessera COMMAND SUBCOMMAND --flag`: each word that names something is known to the program."""
    for line, span in names_in(page):
        all_words = split_words(span)
        for at, word in enumerate(all_words):
            if word.endswith("tessera") and word in ("tessera", "build/bin/tessera"):
                for finding in in_command(all_words[at + 1:], facts):
                    yield line, finding
                break


def in_command(words, facts):
    words = [word.strip("[],") for word in words]
    if not words or not re.fullmatch(r"[a-z]+", words[0]):
        return
    if words[0] == "help":
        words = words[1:]
    if words[0] == "launch" and "--" in words:
        yield from in_command(words[words.index("--") + 1:], facts)
        return
    if (words[0],) not in facts.helps:
        yield f"tessera has no command {words[0]}"
        return
    command, rest = (words[0],), words[1:]
    if commands_below(command, facts) and rest and re.fullmatch(r"[a-z][a-z-]*", rest[0]):
        command, rest = (*command, rest[0]), rest[1:]
        if command not in facts.helps and rest_is_named(command, facts):
            yield f"tessera {command[0]} has no command {command[1]}"
            return
    yield from unknown_flags(command, rest, facts)


def commands_below(command, facts):
    return any(len(other) == 2 and other[0] == command[0] for other in facts.helps)


def rest_is_named(command, facts):
    return not re.search(rf"tessera {command[0]} {command[1]}\b", facts.help(command[0]))


def unknown_flags(command, rest, facts):
    known = facts.help(*command) or facts.help(command[0])
    for word in rest:
        flag = word.split("=")[0]
        if not flag.startswith("--") or flag in ("--", "--help"):
            continue
        if "." in flag:
            if not is_key(flag[2:], facts):
                yield f"there is no key {flag[2:]}"
        elif flag not in facts.short_flags and not re.search(rf"(?<![\w-]){re.escape(flag)}(?![\w-])", known):
            yield f"tessera {' '.join(command)} has no flag {flag}"


def files(page, facts):
    """Files and folders of the checkout, and file names without a folder."""
    for line, span in names_in(page):
        for word in re.split(r"[\s`\"',:]+", span):
            word = word.removeprefix("PREFIX/").rstrip("/.")
            if word.startswith("share/tessera/jobs"):
                word = word.removeprefix("share/tessera/")
            if any(mark in word for mark in "*<$=(") or re.search(r"\b[A-Z]{3,}\b", word):
                continue
            if word.startswith(CHECKOUT_FOLDERS) and not (facts.root / word).exists():
                yield line, f"there is no file or folder {word}"
            elif FILE_NAME.fullmatch(word) and word.endswith((".cpp", ".hpp", ".sh", ".sbatch", ".py")):
                if word not in facts.file_names and word.split(".")[0] not in facts.identifiers:
                    yield line, f"there is no file {word}"


def variables(page, facts):
    for line, span in names_in(page):
        for name in re.findall(r"\bTESSERA_[A-Z_]+[A-Z]\b", span):
            if name not in facts.identifiers:
                yield line, f"nothing reads {name}"


def identifiers(page, facts):
    """`words_with_underscores` exist somewhere in the code."""
    for line, span in names_in(page):
        name = span.removesuffix("()").removesuffix("_fuzz")
        known = name in facts.identifiers or span in facts.tests | NO_IDENTIFIERS
        if re.fullmatch(r"[A-Za-z]\w*_\w+(\(\))?", span) and not known:
            yield line, f"nothing in the code is called {span}"


def ctest(page, facts):
    for line, span in names_in(page):
        if not re.search(r"\bctest\b", span):
            continue
        for option, value in re.findall(r"(-R|-L|--preset) (\"[^\"]*\"|\S+)", span):
            names = facts.tests if option == "-R" else facts.labels if option == "-L" else facts.presets
            for name in value.strip('"').split("|"):
                # Not in this build: tests of what was not there, the simulated GPU's without headers of CUDA, and those that
                # a processor with AVX-512 repeats with AVX2 code.
                declared = name in ("avx2", "sim") or (option == "-R" and name.removesuffix("_test") in facts.identifiers)
                if not declared and not any(re.search(name, known) for known in names):
                    yield line, f"ctest {option} {name} finds nothing"


def presets(page, facts):
    for line, span in names_in(page):
        for name in re.findall(r"--preset (\w+)", span):
            if name not in facts.presets:
                yield line, f"there is no preset {name}"


def bootstrap(page, facts):
    for line, span in names_in(page):
        found = re.match(r"\./bootstrap (.*)", span)
        if not found:
            continue
        for word in found[1].split(" -- ")[0].split():
            if re.match(r"--\w|[a-z]+$", word) and not re.search(rf"(?<![\w-]){word}\b", facts.bootstrap_help):
                yield line, f"./bootstrap does not know {word}"


def components(page, facts):
    """CONTRIBUTING's and architecture.md's tables and INSTALL's sentence name each component, and no other."""
    named = None
    if page.path.name == "CONTRIBUTING.md":
        rows = [block for block in page.of("row") if re.match(r"\| \d", block.text)]
        named, wanted = {name for row in rows for name in markdown.spans(row.text)}, facts.components | {"app"}
    elif page.path.name == "architecture.md":
        rows = [block for block in page.of("row") if re.match(r"\| `\w+` \|", block.text)]
        named, wanted = {markdown.spans(row.text)[0] for row in rows}, facts.components | {"app"}
    elif page.path.name == "INSTALL.md":
        rows = [block for block in page.of("prose") if block.text.startswith("The components are")]
        named, wanted = set(markdown.spans(rows[0].text.split(".")[0])) if rows else set(), facts.components
    if named is not None and rows and named != wanted:
        yield rows[0].line, f"components: missing {sorted(wanted - named)}, unknown {sorted(named - wanted)}"


def levels(page, facts):
    """CONTRIBUTING's table gives each component the level that follows from what CMake lets it use."""
    if page.path.name == "CONTRIBUTING.md":
        for block in page.of("row"):
            level = re.match(r"\| (\d+) \|", block.text)
            for name in markdown.spans(block.text) if level else []:
                if facts.levels.get(name, int(level[1])) != int(level[1]):
                    yield block.line, f"component {name} is on level {facts.levels[name]}: one above the highest that it uses"


def table_of_commands(page):
    """(line, command) of each command in the table below the header "command"; `ckpt list, show` are two."""
    listed = False
    for block in page.of("row", "prose", "heading"):
        listed = block.kind == "row" and (listed or block.text.startswith("| command"))
        for span in markdown.spans(block.text.split("|")[1]) if listed else []:
            first, _, others = span.partition(" ")
            for name in others.split(", ") if others else [""]:
                yield block.line, f"{first} {name}".strip()


def leaves(facts):
    """Commands that do something: `ckpt list`, not `ckpt`; but `plan`, beside `plan calibrate`."""
    def works_alone(name):
        return re.search(rf"tessera {name} \[(?!OPTIONS\] COMMAND)", facts.helps[name,])

    above = {command[0] for command in facts.helps if len(command) == 2 and not works_alone(command[0])}
    names = {" ".join(command) for command in facts.helps if command and (len(command) == 2 or command[0] not in above)}
    return names - {"version"}


def commands_of_readme(page, facts):
    """README's table of commands names each command of the program, and no other."""
    if page.path.name != "README.md":
        return
    named = {name: line for line, name in table_of_commands(page)}
    for name in sorted(leaves(facts) - set(named)):
        yield 1, f"the table of commands lacks {name}"
    for name in sorted(set(named) - leaves(facts)):
        yield named[name], f"the program has no command {name}"


RULES = [keys, toml_keys, commands, files, variables, identifiers, ctest, presets, bootstrap, components, levels,
         commands_of_readme]
