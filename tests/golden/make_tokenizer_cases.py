#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tokenizers and cases that tests/unit/data checks, with Hugging Face's own tokenizers:

    python3 -m venv V && V/bin/pip install tokenizers==0.23.3 && V/bin/python make_tokenizer_cases.py

gpt2_small, qwen_small and odd_small: a tokenizer trained on a few sentences, and texts with their ids.
hf_tiny: the texts of its tokenizer_cases.json are encoded again with its tokenizer.json (which is given).
"""
import json
import pathlib
import random

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

HERE = pathlib.Path(__file__).parent
QWEN = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
SENTENCES = """In the beginning God created the heaven and the earth. And the earth was without form, and void.
Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my purse, I thought I'd sail.
It's what we've said: they're here, I'll go, she'd stay, don't. IT'S WHAT WE'VE SAID: THEY'RE HERE, I'LL GO.
for (int i = 0; i < 1000; ++i) { sum += values[i] * 3.14159; }  // 12345 67 8
Größe, naïve café, señor, Ærøskøbing, Łódź, Žižek, Ελληνικά, русский текст, עברית, العربية, हिन्दी, ไทย, 日本語のテキスト, 한국어
x^2 + y^2 = z^2, e^{i\\pi} = -1; 50% of $1,000.00 is \u20ac500 \u2014 \u201cquoted\u201d \u2026 \U0001f600\U0001f680 e\u0301 a\u030a \u1112\u1161\u11ab
"""
FIXED = [
    "", " ", "  ", "\n", "\n\n\n", "\r\n\r\n", "\t\t x", " leading", "trailing ", "a  b   c    d", "\u00a0x\u3000y\u2028z\u0085w",
    "\u180e mongolian", "it's IT'S i\u017f'\u017f we'\u017f", "don't'll've", "1 12 123 1234 12345", "\u0661\u0662\u0663 \u2167 \u00bd x\u00b2",
    "e\u0301\u0323 o\u0302\u0323 \u212b \u2126 \u1e9b\u0323 \uac00\u11a8 \u1100\u1161\u11a8 \u0958 \u0344 \u2adc",
    "q\u0307\u0323 a\u0315\u0300\u05ae\u0300b \u0b47\u0300\u0b3e", "\u4e2d\u6587 \u6f22\u5b57 \U00031350\U0002ebf0 \U0001e5d0", "\U00010d4a\U00010d40 \u1c89",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea", "\x00\x01\x7f", "a\u0000b", "---===+++", "!!!???\n\n  x", "hello\n world\n\n", "A" * 200, " " * 60 + "x",
    "ab" * 150, "\ufeffbom", "\ufffd", "<|endoftext|>", "a<|endoftext|>b <|endoftext|> <|endoftext|><|endoftext|>", "<|endoftext|", "<|im_start|>user\nhi<|im_end|>\n",
    "tool tooling <tool> a <tool>b<tool> x<strip>  y  <strip>\n z  <left> r <right>  \t s word sword word_ word.word W\u00f6rd caf\u00e9 cafe\u0301 word",
]


def texts():
    rng = random.Random(7)
    rows = FIXED + SENTENCES.splitlines()
    pool = SENTENCES + "".join(FIXED) + "".join(chr(c) for c in (0x300, 0x301, 0x323, 0x345, 0x5b0, 0x93c, 0x1161, 0xfb1d, 0x2f800))
    for _ in range(60):
        rows.append("".join(rng.choice(pool) for _ in range(rng.randint(1, 40))))
    for _ in range(20):
        rows.append("".join(chr(rng.choice([rng.randrange(0x80), rng.randrange(0x250), rng.randrange(0x3000),
                                            rng.randrange(0x1f000, 0x1fa00), rng.randrange(0xe000, 0x110000)]))
                            for _ in range(rng.randint(1, 12))))
    return rows


def write(name, tokenizer):
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    rows = [{"text": t, "ids": tokenizer.encode(t, add_special_tokens=False).ids} for t in texts()]
    cases(folder, rows)


def cases(folder, rows):
    lines = ",\n".join(json.dumps(row, ensure_ascii=True) for row in rows)
    (folder / "tokenizer_cases.json").write_text('{"rows": [\n' + lines + "\n]}\n")


def train(tokenizer, vocab_size):
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, initial_alphabet=alphabet, show_progress=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator([SENTENCES] * 3, trainer)


def gpt2():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    train(tokenizer, 700)
    tokenizer.add_special_tokens(["<|endoftext|>"])
    write("gpt2_small", tokenizer)


def qwen():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(QWEN), behavior="isolated"), pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    train(tokenizer, 700)
    tokenizer.add_special_tokens(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer.add_tokens([AddedToken("<tool>", normalized=False), AddedToken("cafe\u0301", normalized=True)])
    write("qwen_small", tokenizer)


def odd():
    """Prefix space, single digits, whole words first, and added tokens with every flag."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=True)])
    train(tokenizer, 500)
    tokenizer.add_special_tokens([AddedToken("<strip>", lstrip=True, rstrip=True), AddedToken("<left>", lstrip=True),
                                  AddedToken("<right>", rstrip=True), AddedToken("<|end", normalized=False), "<|endoftext|>"])
    tokenizer.add_tokens([AddedToken("word", single_word=True, normalized=False), AddedToken("tool", normalized=True)])
    write("odd_small", tokenizer)


def hf_tiny():
    folder = HERE / "hf_tiny"
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    given = json.loads((folder / "tokenizer_cases.json").read_text())["rows"]
    rows = [{"text": row["text"], "ids": tokenizer.encode(row["text"], add_special_tokens=False).ids, "pre": row.get("pre")} for row in given]
    assert [row["ids"] for row in rows] == [row["ids"] for row in given]
    cases(folder, rows)


gpt2()
qwen()
odd()
hf_tiny()
