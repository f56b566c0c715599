#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes unicode_tables.inc: what byte-level BPE needs of Unicode, in the versions that Hugging Face's tokenizers uses.

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3 && V/bin/python make_unicode_tables.py > unicode_tables.inc

Its regular expressions know Unicode 16, its NFC an older version than Python's: both are asked character by character.
Python's unicodedata (3.11: Unicode 14, like PCRE2 10.42) gives the values.
"""
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

characters = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
nfc = normalizers.NFC().normalize_str


def members(pattern):
    removed = pre_tokenizers.Split(Regex(pattern), behavior="removed")
    return {c for c in characters if not removed.pre_tokenize_str(chr(c))}


def ranges(codes):
    out = []
    for c in sorted(codes):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def later_additions(category):
    theirs = members(r"\p{%s}" % category)
    ours = {c for c in characters if unicodedata.category(chr(c))[0] == category}
    assert not ours - theirs, "a character left its category"
    return ranges(theirs - ours)


def word_additions():
    """What \\w matches beyond letters, marks, Nd, Nl and Pc, both in patterns and in single_word (which differ below U+0100)."""
    def is_plain(category):
        return category[0] in "LM" or category in ("Nd", "Nl", "Pc")
    return ranges(c for c in members(r"\w") if c > 0xFF and not is_plain(unicodedata.category(chr(c))))


def known_class(c):
    """Canonical combining class, 0 where their NFC does not know the character yet."""
    ccc = unicodedata.combining(chr(c))
    if ccc == 0:
        return 0
    mark, after = ("\u0301", True) if ccc == 1 else ("\u0334", False)
    moved = nfc("q" + (mark + chr(c) if after else chr(c) + mark)) == "q" + (chr(c) + mark if after else mark + chr(c))
    return ccc if moved else 0


def hangul(c):
    return 0xAC00 <= c < 0xAC00 + 11172


def decomposition(c):
    text = unicodedata.decomposition(chr(c))
    return [] if not text or text.startswith("<") or hangul(c) else [int(x, 16) for x in text.split()]


def emit(name, kind, rows, width):
    print(f"constexpr {kind} {name}[] = {{")
    for i in range(0, len(rows), width):
        print("    " + ", ".join(rows[i:i + width]) + ",")
    print("};\n")


def pcre_class(found):
    return "".join(f"\\\\x{{{a:x}}}" if a == b else f"\\\\x{{{a:x}}}-\\\\x{{{b:x}}}" for a, b in found)


print("// SPDX-License-Identifier: Apache-2.0")
print("// Made by make_unicode_tables.py; do not edit.\n")
for name, category in (("kLaterLetters", "L"), ("kLaterNumbers", "N")):
    print(f"/// Inside of a character class: \\p{{{category}}} since Unicode 14.")
    print(f'constexpr std::string_view {name} = "{pcre_class(later_additions(category))}";\n')

print("/// Inside of a character class: \\w beyond letters, marks, Nd, Nl and Pc of Unicode 14.")
print(f'constexpr std::string_view kOtherWord = "{pcre_class(word_additions())}";\n')

classes = {c: known_class(c) for c in characters}
runs = []
for c in characters:
    if classes[c]:
        if runs and runs[-1][1] == c - 1 and runs[-1][2] == classes[c]:
            runs[-1][1] = c
        else:
            runs.append([c, c, classes[c]])
emit("kCombiningClasses", "CombiningRun", [f"{{0x{a:x}, 0x{b:x}, {k}}}" for a, b, k in runs], 5)

parts, composes = {}, {}
for c in characters:
    d = decomposition(c)
    if not d or (len(d) == 2 and nfc(unicodedata.normalize("NFD", chr(c))) == unicodedata.normalize("NFD", chr(c))
                 and unicodedata.normalize("NFC", chr(c)) == chr(c)):
        continue  # none, or one that their NFC does not know
    parts[c] = d + [0] * (2 - len(d))
    composes[c] = len(d) == 2 and nfc(chr(c)) == chr(c)
emit("kDecompositions", "Decomposition",
     [f"{{0x{c:x}, 0x{a:x}, 0x{b:x}, {int(composes[c])}}}" for c, (a, b) in sorted(parts.items())], 4)
print(len(runs), "runs,", len(parts), "decompositions", file=sys.stderr)
