# SPDX-License-Identifier: Apache-2.0
"""The functions and classes of a C++ source, from its braces and semicolons: no compiler, and macros are not expanded."""

import re
from dataclasses import dataclass, field

TEXT = re.compile(r"""
    //[^\n]* | /\*.*?\*/
  | (?P<literal>R"(?P<mark>[^()\s\\]*)\(.*?\)(?P=mark)" | "(?:[^"\\\n]|\\.)*" | (?<![0-9a-zA-Z])'(?:[^'\\\n]|\\.)+')
  | ^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*
  """, re.X | re.S | re.M)
OPERATOR = re.compile(r"\boperator\s*(\(\)|\[\]|[^\s\w(]+)")
ACCESS = re.compile(r"\s*(public|private|protected)\s*:(?!:)")
CLASS = re.compile(r"\s*(?:template\b\s*(?:requires\b.*?)?)?(class|struct|union)\b\s+(?:alignas\0\s*)?(\w+)")
DECLARES_NO_DATA = re.compile(r"\s*(using|typedef|friend|static|enum|class|struct|union|template|namespace|extern)\b")

NEWLINE, INSIDE = "\n", "\v"


@dataclass
class Function:
    name: str
    line: int
    lines: int  # from its first line to that of its closing brace, without those inside of a literal
    statements: int  # of its body itself, not of blocks, lambdas and tables in it


@dataclass
class Class:
    kind: str  # "class", "struct", "union"
    name: str
    line: int
    members: int = 0  # data, without static data
    public_functions: int = 0  # declared or defined in the class


@dataclass
class Outline:
    functions: list = field(default_factory=list)
    classes: list = field(default_factory=list)


def without_text(source):
    """The source without comments, directives and the contents of literals. Lines keep their numbers: \v is one in a literal."""
    def blank(found):
        return f'"{INSIDE * found[0].count(NEWLINE)}"' if found["literal"] else NEWLINE * found[0].count(NEWLINE)
    return TEXT.sub(blank, source)


def plain(statement):
    """The statement without attributes and template arguments, and with NUL for each pair of parentheses."""
    statement = OPERATOR.sub("operator", re.sub(r"\[\[.*?\]\]", "", statement))
    for pattern, instead in ((r"\([^()]*\)", "\0"), (r"<[^<>]*>", ""), ("\0+", "\0")):
        before = None
        while before != statement:
            before, statement = statement, re.sub(pattern, instead, statement)
    return statement


def function_name(text):
    """The name of the function that a plain statement declares or begins, or nothing."""
    found = re.match(r"[^=]*?(~?\w+(?:::~?\w+)*|operator\s*\w*)\s*\0", text, re.S)
    return found[1] if found else None


def counts(owner, text):
    """Whether a plain statement in a class declares a function other than constructors, destructor and operators."""
    return not re.match(rf"~?{owner.name}$|operator$", function_name(text))


def statements(body):
    """The semicolons of a body at the depth of its first brace, and the blocks there."""
    depth = found = 0
    for mark in re.finditer(r"[(){};]", body):
        if mark[0] in "({":
            depth += 1
        elif mark[0] in ")}":
            depth -= 1
        found += depth == 1 and (mark[0] == ";" or (mark[0] == "}" and not re.match(r"\s*[;,.)]", body[mark.end():])))
    return found


class Reader:
    def __init__(self, source):
        self.text, self.at, self.found = without_text(source), 0, Outline()

    def line(self, at):
        return len(re.findall(r"[\n\v]", self.text[:at])) + 1

    def end_of(self, at):
        """Where the brace that opens at AT is closed."""
        depth = 0
        for mark in re.finditer(r"[{}]", self.text[at:]):
            depth += 1 if mark[0] == "{" else -1
            if depth == 0:
                return at + mark.start()
        raise ValueError(f"line {self.line(at)}: a brace is not closed")

    def next_mark(self, at):
        """The next brace or semicolon outside of parentheses."""
        depth = 0
        for mark in re.finditer(r"[(){};]", self.text[at:]):
            if mark[0] in "()":
                depth += 1 if mark[0] == "(" else -1
            elif depth == 0:
                return at + mark.start()
        return len(self.text)

    def scope(self, owner=None, public=True):
        """Reads declarations up to the brace that closes the scope."""
        begin, skipped = self.at, ""  # of the statement; what of it has been read, without braced initializers
        while self.at < len(self.text):
            access = ACCESS.match(self.text, self.at) if not skipped else None
            if access:
                public, self.at = access[1] == "public", access.end()
                begin = self.at
                continue
            mark = self.next_mark(self.at)
            statement = skipped + self.text[self.at:mark]
            self.at = mark + 1
            if mark == len(self.text) or self.text[mark] == "}":
                return
            if self.text[mark] == ";":
                if owner:
                    self.declared(owner, public, plain(statement))
                begin, skipped = self.at, ""
            elif not self.block(owner, public, begin, mark, statement):
                self.at = self.end_of(mark) + 1
                skipped = statement + " "
            else:
                begin, skipped = self.at, ""

    def block(self, owner, public, begin, mark, statement):
        """Reads what the brace at MARK opens; false if it only initializes a part of the statement."""
        text = plain(statement)
        first = begin + len(self.text[begin:mark]) - len(self.text[begin:mark].lstrip())
        kind = CLASS.match(text)
        if re.match(r"\s*(inline\s+)?namespace\b|\s*extern\b[^\0]*$", text):
            self.scope()
        elif kind and "\0" not in text[kind.end():]:
            found = Class(kind[1], kind[2], self.line(first))
            self.found.classes.append(found)
            self.scope(found, kind[1] != "class")
            self.at = self.next_mark(self.at) + 1
        elif function_name(text) and not re.search(r":.*[\w>]\s*$", text.split("\0", 1)[1], re.S):
            self.at = self.end_of(mark) + 1
            whole = self.text[first:self.at]
            self.found.functions.append(
                Function(function_name(text), self.line(first), whole.count(NEWLINE) + 1, statements(self.text[mark:self.at])))
            if owner and public:
                owner.public_functions += counts(owner, text)
        else:
            return False
        return True

    def declared(self, owner, public, text):
        if not text.strip():
            return
        if function_name(text) and not re.match(r"\s*(using|typedef|friend)\b", text):
            owner.public_functions += public and counts(owner, text)
        elif not DECLARES_NO_DATA.match(text):
            owner.members += 1 + text.split("=")[0].count(",")


def outline(source):
    reader = Reader(source)
    while reader.at < len(reader.text):
        reader.scope()
    return reader.found
