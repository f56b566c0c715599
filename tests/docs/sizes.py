# SPDX-License-Identifier: Apache-2.0
"""No file, function or class is too long to be read in one sitting."""

import outline

FILE_LINES, FUNCTION_LINES, MEMBERS, PUBLIC_FUNCTIONS = 300, 60, 15, 20
TABLE_STATEMENTS = 2  # a longer function with no more than these only lists values
CPP = (".cpp", ".hpp", ".cu", ".cuh", ".inl", ".inc", ".h")
SOURCES = CPP + (".py", ".sh", ".cmake", "CMakeLists.txt", "bootstrap", ".ci/run")
OF_ANY_LENGTH = {
    "src/data/unicode_tables.inc",  # generated
    "include/tessera/config/job_config.hpp",  # the keys, one a line
}


def sizes_of(name, text):
    """(what, which, how large, at most) of a source file."""
    code = outline.without_text(text) if name.endswith(CPP) else text  # lines of a literal are data
    if name not in OF_ANY_LENGTH:
        yield "lines", name, code.count("\n"), FILE_LINES
    if not name.endswith(CPP):
        return
    found = outline.outline(text)
    for function in found.functions:
        if function.statements > TABLE_STATEMENTS:
            yield "lines", f"{name}:{function.name}", function.lines, FUNCTION_LINES
    for one in found.classes:
        if one.kind == "class":  # a struct is a record: its members are its contents
            yield "members", f"{name}:{one.name}", one.members, MEMBERS
            yield "public functions", f"{name}:{one.name}", one.public_functions, PUBLIC_FUNCTIONS


def findings_in(name, text):
    for what, which, size, most in sizes_of(name, text):
        if size > most:
            yield f"{which}: {size} {what}, at most {most}"


def findings(facts):
    for name in facts.own:
        if name.endswith(SOURCES):
            yield from findings_in(name, (facts.root / name).read_text("utf-8"))
