# SPDX-License-Identifier: Apache-2.0
"""Planted faults in sources: each must be found, and a good source must pass. What is missed makes the test fail."""

import comments
import sizes
import spdx

LINES = "  f(1);\n"
MEMBERS = "".join(f"  std::map<int, std::vector<int>> m{n}_{{n}};\n" for n in range(16))
FUNCTIONS = "".join(f"  void f{n}(std::function<void(int)> g = {{}}) const;\n" for n in range(21))
FAULTS = [  # (a source, what the finding must say)
    ("\n" * 301, "a.cpp: 301 lines"),
    ("namespace a {\nvoid X::f(int a) const {\n" + LINES * 59 + "}\n}  // namespace a\n", "a.cpp:X::f: 61 lines"),
    ("X::X(int a) : a_{a}, b_(b) {\n" + LINES * 59 + "}\n", "a.cpp:X::X: 61 lines"),
    ("struct X {\n  template <typename T>\n  auto f(T a) -> T {\n" + LINES * 58 + "  }\n};\n", "a.cpp:f: 61 lines"),
    ("class X final : public Y<Z> {\n private:\n" + MEMBERS + "};\n", "a.cpp:X: 16 members"),
    ("class X {\n  int a, b = 1;\n  static int c;\n  using D = int;\n  X(int);\n" + MEMBERS[:-1] + "};\n", "a.cpp:X: 18 members"),
    ("class X {\n public:\n" + FUNCTIONS + "};\n", "a.cpp:X: 21 public functions"),
]
GOOD = [
    'const char* kTable = R"(' + "\n" * 400 + ')";\n',
    "\n" * 300,
    "void f() {\n" + LINES * 58 + "}\n",
    "std::vector<Case> table() {\n  return {\n" + "      {1, [] { return 2; }},\n" * 80 + "  };\n}\n",
    'void f() {\n  f(R"(' + "\n" * 80 + ')");\n  f();\n  f();\n}\n',
    "struct X {\n" + MEMBERS + "};\nclass Y {\n  int a;\n" + FUNCTIONS + "};\n",
    "class X {\n public:\n  X();\n  ~X();\n  X& operator=(X&&);\n" + FUNCTIONS.replace("f0", "operator<") + "};\n",
]
COMMENT = 'f("// for ever");  ///< the step is left\n                 ///< out; `for ever`\n'
FIRST_LINES = [  # (file, its first lines, whether they have the licence)
    ("a.cpp", ["// SPDX-License-Identifier: Apache-2.0\n"], True),
    ("a.cpp", ["#pragma once\n", "// SPDX-License-Identifier: Apache-2.0\n"], False),
    ("a.py", ["#!/usr/bin/env python3\n", "# SPDX-License-Identifier: Apache-2.0\n"], True),
    ("src/CMakeLists.txt", ["# SPDX-License-Identifier: MIT\n"], False),
]


def sizes_in(text):
    return list(sizes.findings_in("a.cpp", text))


def missed(facts):
    for text, expected in FAULTS:
        if not any(expected in finding for finding in sizes_in(text)):
            yield f"planted_sources.py: '{expected}' is not found in {text[:60]!r}...: {sizes_in(text)}"
    for text in GOOD:
        if sizes_in(text):
            yield f"planted_sources.py: {sizes_in(text)} is found in {text[:60]!r}..."
    found = list(comments.findings_in("a.cpp", COMMENT))
    if len(found) != 1 or "left out" not in found[0]:
        yield f"planted_sources.py: the comment is read as {found}"
    for name, lines, good in FIRST_LINES:
        if spdx.has_licence(name, lines) != good:
            yield f"planted_sources.py: the licence of {name} is misread in {lines}"
