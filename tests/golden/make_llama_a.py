#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/llama_a again: 20 AdamW steps of a tiny Llama 3 in plain PyTorch, in float32 and float64.

    python make_llama_a.py [FOLDER]         weights_init and batches of FOLDER -> train.json, tensors.json
    python make_llama_a.py [FOLDER] --new   draws new weights and batches first

Needs torch, numpy and safetensors from PyPI. One thread, deterministic. tensors.json holds, for each tensor in Hugging Face's names and
row order, its L2 norm, sum, largest magnitude, first two elements and probe = sum_i t[i] cos(0.1 (i + 1)).
"""
import argparse
import json
import math
import pathlib

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file

DIM, LAYERS, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCAB, SEQ, BATCH, STEPS = 64, 4, 4, 2, 16, 192, 256, 64, 8, 20
THETA, EPS, LR, WARMUP, BETAS, DECAY, MAX_NORM = 500000.0, 1e-5, 8e-4, 2, (0.9, 0.95), 0.1, 1.0
SCALING = dict(factor=8.0, low=1.0, high=4.0, original=8192)


def shapes():
    table = {"model.embed_tokens.weight": (VOCAB, DIM), "model.norm.weight": (DIM,), "lm_head.weight": (VOCAB, DIM)}
    for i in range(LAYERS):
        block = f"model.layers.{i}."
        table |= {block + "input_layernorm.weight": (DIM,), block + "post_attention_layernorm.weight": (DIM,),
                  block + "self_attn.q_proj.weight": (HEADS * HEAD_DIM, DIM), block + "self_attn.k_proj.weight": (KV_HEADS * HEAD_DIM, DIM),
                  block + "self_attn.v_proj.weight": (KV_HEADS * HEAD_DIM, DIM), block + "self_attn.o_proj.weight": (DIM, HEADS * HEAD_DIM),
                  block + "mlp.gate_proj.weight": (HIDDEN, DIM), block + "mlp.up_proj.weight": (HIDDEN, DIM), block + "mlp.down_proj.weight": (DIM, HIDDEN)}
    return table


def draw(folder):
    """New weights (exact in bfloat16; norm weights are not all ones) and batches."""
    generator = torch.Generator().manual_seed(1234)
    weights = {}
    for name, shape in shapes().items():
        t = torch.randn(shape, generator=generator)
        weights[name] = (1 + 0.05 * t if "norm" in name else t if "embed" in name else t * 0.02 if "lm_head" not in name else t / 8).bfloat16()
    tokens = torch.randint(0, VOCAB, (STEPS, BATCH, SEQ + 1), generator=generator, dtype=torch.int32)
    save_file(weights, folder / "weights_init.safetensors")
    save_file({"inputs": tokens[..., :-1].contiguous(), "labels": tokens[..., 1:].contiguous()}, folder / "batches.safetensors")


def frequencies(dtype):
    inverse = 1.0 / THETA ** (torch.arange(0, HEAD_DIM, 2).to(dtype) / HEAD_DIM)
    scaled = []
    for f in inverse.tolist():
        wave = 2 * math.pi / f
        if wave > SCALING["original"] / SCALING["low"]:
            f = f / SCALING["factor"]
        elif wave >= SCALING["original"] / SCALING["high"]:
            s = (SCALING["original"] / wave - SCALING["low"]) / (SCALING["high"] - SCALING["low"])
            f = (1 - s) * f / SCALING["factor"] + s * f
        scaled.append(f)
    return torch.tensor(scaled, dtype=dtype)


def rotate(x, cos, sin):
    """Hugging Face's layout: the halves of each head form the pairs."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


def rms_norm(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + EPS) * weight


def forward(w, tokens, cos, sin):
    batch = tokens.shape[0]
    x = F.embedding(tokens, w["model.embed_tokens.weight"])
    for i in range(LAYERS):
        get = lambda name: w[f"model.layers.{i}.{name}.weight"]
        h = rms_norm(x, get("input_layernorm"))
        heads = lambda name, n: F.linear(h, get(name)).view(batch, SEQ, n, HEAD_DIM).transpose(1, 2)
        q, k, v = rotate(heads("self_attn.q_proj", HEADS), cos, sin), rotate(heads("self_attn.k_proj", KV_HEADS), cos, sin), heads("self_attn.v_proj", KV_HEADS)
        k, v = (t.repeat_interleave(HEADS // KV_HEADS, dim=1) for t in (k, v))
        scores = (q @ k.transpose(-1, -2)) / math.sqrt(HEAD_DIM)
        mask = torch.ones(SEQ, SEQ, dtype=torch.bool).tril()
        out = scores.masked_fill(~mask, -math.inf).softmax(-1) @ v
        x = x + F.linear(out.transpose(1, 2).reshape(batch, SEQ, -1), get("self_attn.o_proj"))
        h = rms_norm(x, get("post_attention_layernorm"))
        x = x + F.linear(F.silu(F.linear(h, get("mlp.gate_proj"))) * F.linear(h, get("mlp.up_proj")), get("mlp.down_proj"))
    return F.linear(rms_norm(x, w["model.norm.weight"]), w["lm_head.weight"])


def describe(t):
    flat = t.detach().double().reshape(-1)
    phase = torch.cos(0.1 * torch.arange(1, flat.numel() + 1, dtype=torch.float64))
    return dict(shape=list(t.shape), l2=flat.norm().item(), sum=flat.sum().item(), absmax=flat.abs().max().item(),
                probe=(flat * phase).sum().item(), first2=flat[:2].tolist())


def train(folder, dtype):
    w = {k: v.to(dtype).requires_grad_() for k, v in load_file(folder / "weights_init.safetensors").items()}
    data = load_file(folder / "batches.safetensors")
    angles = torch.outer(torch.arange(SEQ, dtype=dtype), frequencies(dtype))
    cos, sin = angles.cos(), angles.sin()
    init = {k: describe(v) for k, v in w.items()}
    optimizer = torch.optim.AdamW(list(w.values()), lr=LR, betas=BETAS, eps=1e-8, weight_decay=DECAY)
    log = dict(loss=[], grad_norm=[], lr=[], valid_tokens=[])
    gradients = None
    for step in range(STEPS):
        lr = LR * min(1.0, (step + 1) / WARMUP)
        optimizer.param_groups[0]["lr"] = lr
        labels = data["labels"][step].long()
        valid = int((labels != -100).sum())
        logits = forward(w, data["inputs"][step].long(), cos, sin)
        loss = F.cross_entropy(logits.reshape(-1, VOCAB), labels.reshape(-1), ignore_index=-100, reduction="sum") / valid
        optimizer.zero_grad()
        loss.backward()
        if step == 0:
            gradients = {k: describe(v.grad) for k, v in w.items()}
        norm = torch.nn.utils.clip_grad_norm_(w.values(), MAX_NORM)
        optimizer.step()
        for key, value in zip(log, (loss.item(), norm.item(), lr, valid)):
            log[key].append(value)
    return init, gradients, log, {k: describe(v) for k, v in w.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parent / "llama_a")
    parser.add_argument("--new", action="store_true")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    if args.new:
        args.folder.mkdir(exist_ok=True)
        draw(args.folder)
    single, double = train(args.folder, torch.float32), train(args.folder, torch.float64)
    (args.folder / "train.json").write_text(json.dumps(dict(f32=single[2], f64=double[2]), indent=1))
    tensors = dict(init=single[0], step1_grads_f32=single[1], step1_grads_f64=double[1], final_f32=single[3], final_f64=double[3])
    (args.folder / "tensors.json").write_text(json.dumps(tensors, indent=1))


if __name__ == "__main__":
    main()
