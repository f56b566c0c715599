#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The stacks of speed.sh in plain PyTorch on one GPU: FSDP2 with bfloat16 parameters, eager or compiled block by block."""
import argparse
import math
import os
import statistics
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--compile", action="store_true", help="torch.compile for each block")
    parser.add_argument("--moe", action="store_true", help="4 layers of Qwen3 30B-A3B instead of 8 of Llama 3.1 8B")
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--tiny", action="store_true", help="tries the script on the host, with tiny sizes")
    parser.add_argument("--peak", type=float, default=989.5e12, help="dense bfloat16 FLOP/s of the GPU")
    return parser.parse_args()


wanted = arguments()  # before torch is imported: --help needs none

import torch
import torch.nn.functional as F
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

LAYERS, SEQ, DIM, HEADS, KV, HEAD, HIDDEN, VOCAB = 8, 8192, 4096, 32, 8, 128, 14336, 128256
EXPERTS, TOP = (128, 8) if wanted.moe else (0, 0)
if wanted.moe:
    LAYERS, DIM, KV, HIDDEN, VOCAB = 4, 2048, 4, 768, 151936
if wanted.tiny:
    LAYERS, SEQ, DIM, HEADS, KV, HEAD, HIDDEN, VOCAB = 2, 64, 64, 4, 2, 16, 192, 256
    EXPERTS, TOP = (8, 2) if wanted.moe else (0, 0)
DEVICE = "cpu" if wanted.tiny else "cuda"


def rotate(x, turn):
    pairs = x.float().unflatten(-1, (-1, 2))
    if not wanted.compile:
        return torch.view_as_real(torch.view_as_complex(pairs) * torch.complex(*turn)).flatten(-2).to(x.dtype)
    (a, b), (cos, sin) = pairs.unbind(-1), turn  # the compiler makes no code for complex numbers
    return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2).to(x.dtype)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = nn.Linear(DIM, HIDDEN, bias=False), nn.Linear(DIM, HIDDEN, bias=False)
        self.w2 = nn.Linear(HIDDEN, DIM, bias=False)

    def forward(self, h):
        return self.w2(F.silu(self.w1(h)) * self.w3(h))


class Mixture(nn.Module):
    """Experts as TorchTitan 0.2.2 has them: rows in the order of their experts, grouped products, weights applied after them."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(DIM, EXPERTS, bias=False)
        self.w1, self.w2, self.w3 = (nn.Parameter(torch.randn(EXPERTS, *shape) * 0.02)
                                     for shape in ((HIDDEN, DIM), (DIM, HIDDEN), (HIDDEN, DIM)))

    def forward(self, h):
        flat = h.flatten(0, 1)
        weights, chosen = self.router(flat).float().softmax(-1).topk(TOP)
        weights = weights / weights.sum(-1, keepdim=True)
        counts = torch.histc(chosen.flatten().float(), bins=EXPERTS, min=0, max=EXPERTS)
        order = chosen.flatten().argsort(stable=True)
        ends = counts.cumsum(0).to(torch.int32)
        rows = flat[order // TOP]
        hidden = F.silu(torch._grouped_mm(rows, self.w1.mT, ends)) * torch._grouped_mm(rows, self.w3.mT, ends)
        out = torch._grouped_mm(hidden, self.w2.mT, ends)
        unsorted = torch.zeros_like(out)
        unsorted[order] = out
        out = torch.bmm(weights[:, None], unsorted.unflatten(0, (-1, TOP)).float()).to(h.dtype)
        return out.view_as(h)


class Block(nn.Module):
    def __init__(self, turn):
        super().__init__()
        self.turn = turn  # no input of forward(): FSDP would make bfloat16 of it
        self.attention_norm, self.ffn_norm = nn.RMSNorm(DIM, 1e-5), nn.RMSNorm(DIM, 1e-5)
        self.wq, self.wo = nn.Linear(DIM, HEADS * HEAD, bias=False), nn.Linear(HEADS * HEAD, DIM, bias=False)
        self.wk, self.wv = nn.Linear(DIM, KV * HEAD, bias=False), nn.Linear(DIM, KV * HEAD, bias=False)
        self.q_norm, self.k_norm = (nn.RMSNorm(HEAD, 1e-5), nn.RMSNorm(HEAD, 1e-5)) if wanted.moe else (nn.Identity(), nn.Identity())
        self.feed_forward = Mixture() if wanted.moe else Gated()

    def forward(self, x):
        h = self.attention_norm(x)
        q, k, v = (w(h).unflatten(-1, (-1, HEAD)) for w in (self.wq, self.wk, self.wv))
        q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = rotate(q, self.turn).transpose(1, 2), rotate(k, self.turn).transpose(1, 2), v.transpose(1, 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.wo(out.transpose(1, 2).flatten(-2))
        return x + self.feed_forward(self.ffn_norm(x))


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(SEQ).float(), 500000.0 ** (-torch.arange(0, HEAD, 2).float() / HEAD))
        turn = angles.cos()[:, None], angles.sin()[:, None]
        self.tok_embeddings = nn.Embedding(VOCAB, DIM)
        self.layers = nn.ModuleList(Block(turn) for _ in range(LAYERS))
        self.norm, self.output = nn.RMSNorm(DIM, 1e-5), nn.Linear(DIM, VOCAB, bias=False)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def step(model, optimizer, tokens):
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return loss


def main():
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29511")
    torch.distributed.init_process_group("gloo" if wanted.tiny else "nccl", rank=0, world_size=1)
    torch.manual_seed(7)
    wait = (lambda: None) if wanted.tiny else torch.cuda.synchronize
    mesh = torch.distributed.init_device_mesh(DEVICE, (1,))
    with torch.device(DEVICE):
        model = Stack()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        if wanted.compile:
            layer.compile()
        fully_shard(layer, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    fully_shard(model, mesh=mesh, mp_policy=policy, reshard_after_forward=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    seconds = []
    for _ in range(wanted.steps):
        tokens = torch.randint(VOCAB, (1, SEQ + 1), device=DEVICE)
        wait()
        start = time.monotonic()
        loss = step(model, optimizer, tokens)
        wait()
        seconds.append(time.monotonic() - start)
    if not math.isfinite(loss.item()):
        raise SystemExit(f"the loss is {loss.item()}")
    middle = statistics.median(seconds[4:] or seconds)
    rate = SEQ / middle
    weights = sum(p.numel() for p in model.parameters()) - VOCAB * DIM - LAYERS * (EXPERTS - TOP) * 3 * DIM * HIDDEN
    attention = 6 * LAYERS * HEADS * 2 * HEAD * SEQ
    print(f"@ tokens per second: {rate:.1f} per GPU")
    print(f"@ step: {middle:.4f} s")
    print(f"@ first step: {seconds[0]:.1f} s")
    print(f"@ MFU: {100 * rate * (6 * weights + attention) / wanted.peak:.2f} % with attention counted whole")
    print(f"@ MFU causal: {100 * rate * (6 * weights + attention / 2) / wanted.peak:.2f} % with half of attention")
    if not wanted.tiny:
        print(f"@ peak memory: {torch.cuda.max_memory_allocated() / 2**30:.3f} GiB")
    torch.distributed.destroy_process_group()


main()
