#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/families: one tiny random model of each family, by PyPI's transformers, with the logits it computes.

    python -m venv venv && venv/bin/pip install -r tests/interchange/requirements.txt torch==2.11.0
    venv/bin/python tests/golden/make_families.py

Each folder holds config.json and model.safetensors as save_pretrained writes them, config.v4.json (the same in transformers 4's
spelling, which published repositories use), and expected.safetensors: input_ids [2, 24], logits (float32, computed in float64), and for Mixtral loss and
aux_loss (labels = inputs, the router's auxiliary loss included). Weights are larger than training's initial ones, so that
routing is decided clearly, sinks, biases and windows matter, and every scaling of RoPE bites at 24 positions.
"""
import json
import pathlib

import torch
import transformers
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent / "families"
SIZES = dict(vocab_size=48, hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=64, bos_token_id=None, eos_token_id=None)
YARN = dict(rope_type="yarn", factor=4.0, beta_fast=4.0, beta_slow=1.0, original_max_position_embeddings=16)


def models():
    t = transformers
    yield "qwen3", t.Qwen3ForCausalLM(t.Qwen3Config(
        **SIZES, head_dim=8, tie_word_embeddings=True, rope_parameters=dict(rope_type="default", rope_theta=1e4)))
    yield "qwen3_moe", t.Qwen3MoeForCausalLM(t.Qwen3MoeConfig(
        **SIZES, head_dim=8, num_experts=8, num_experts_per_tok=3, moe_intermediate_size=12, norm_topk_prob=True,
        rope_parameters=dict(rope_type="default", rope_theta=1e4)))
    yield "mixtral", t.MixtralForCausalLM(t.MixtralConfig(
        **SIZES, num_local_experts=4, num_experts_per_tok=2, output_router_logits=True, router_aux_loss_coef=0.02))
    yield "deepseek_v3", t.DeepseekV3ForCausalLM(t.DeepseekV3Config(
        **{**SIZES, "num_key_value_heads": 4, "num_hidden_layers": 3}, moe_intermediate_size=12, n_shared_experts=2,
        n_routed_experts=8, num_experts_per_tok=3, n_group=4, topk_group=2, routed_scaling_factor=2.5, q_lora_rank=20,
        kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=12, v_head_dim=10, first_k_dense_replace=1, num_mtp_layers=0,
        rope_parameters=dict(YARN, rope_theta=1e4, mscale=1.0, mscale_all_dim=0.7)))
    yield "gpt_oss", t.GptOssForCausalLM(t.GptOssConfig(
        **SIZES, head_dim=8, num_local_experts=4, num_experts_per_tok=2, sliding_window=6, swiglu_limit=1.5,
        rope_parameters=dict(YARN, rope_theta=1.5e5, truncate=False)))


def randomise(model):
    generator = torch.Generator().manual_seed(3)
    for name, value in list(model.named_parameters()) + list(model.named_buffers()):
        if "inv_freq" in name:
            continue
        noise = torch.randn(value.shape, generator=generator)
        spread = 0.3 if "embed" in name else 0.2 if value.dim() > 1 else 0.3
        value.data.copy_(noise * spread + (1.0 if "norm" in name else 0.0))


def write_old_spelling(folder):
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else {"type": rope.pop("rope_type"), **rope}
    config["torch_dtype"] = config.pop("dtype")
    config.pop("transformers_version")
    (folder / "config.v4.json").write_text(json.dumps(config, indent=2) + "\n")


def main():
    for name, model in models():
        model = model.eval()
        model.set_attn_implementation("eager")
        model.set_experts_implementation("eager")
        randomise(model)
        folder = OUT / name
        model.save_pretrained(folder)
        (folder / "generation_config.json").unlink(missing_ok=True)
        write_old_spelling(folder)
        ids = torch.randint(0, SIZES["vocab_size"], (2, 24), generator=torch.Generator().manual_seed(4))
        with torch.no_grad():
            out = model.double()(input_ids=ids, labels=ids)
        expected = {"input_ids": ids, "logits": out.logits.float().contiguous()}
        if name == "mixtral":
            expected |= {"loss": out.loss.double().view(1), "aux_loss": out.aux_loss.double().view(1)}
        save_file(expected, folder / "expected.safetensors")
        print(name, sum(p.numel() for p in model.parameters()), "parameters, logits up to",
              round(out.logits.abs().max().item(), 3), "loss", out.loss.item())


if __name__ == "__main__":
    main()
