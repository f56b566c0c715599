#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/golden/quantized: tiny models with quantized weights, and the same weights as PyTorch decodes them.

    python tests/golden/make_quantized.py       (the environment of make_families.py)

fp8: a DeepSeek-V3 whose matrices are E4M3 with scales for blocks of 128 x 128, decoded as in DeepSeek's fp8_cast_bf16.py: float32
value times scale, rounded to bfloat16. mxfp4: a gpt-oss whose experts are blocks and scales, decoded by transformers.
Each folder has config.json and model.safetensors, and in twin/ the same model in bfloat16.
"""
import json
import pathlib

import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

OUT = pathlib.Path(__file__).resolve().parent / "quantized"
BLOCK = 128


def fp8_model():
    t = transformers
    return t.DeepseekV3ForCausalLM(t.DeepseekV3Config(
        vocab_size=32, hidden_size=144, intermediate_size=136, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=64, bos_token_id=None, eos_token_id=None, moe_intermediate_size=12, n_shared_experts=1,
        n_routed_experts=2, num_experts_per_tok=1, n_group=1, topk_group=1, q_lora_rank=20, kv_lora_rank=16, qk_rope_head_dim=8,
        qk_nope_head_dim=12, v_head_dim=10, first_k_dense_replace=1, num_mtp_layers=0,
        rope_parameters=dict(rope_type="default", rope_theta=1e4)))


def mxfp4_model():
    t = transformers
    return t.GptOssForCausalLM(t.GptOssConfig(
        vocab_size=32, hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=64, bos_token_id=None, eos_token_id=None, head_dim=8, num_local_experts=3, num_experts_per_tok=2,
        sliding_window=6, rope_parameters=dict(rope_type="default", rope_theta=1.5e5)))


def write(name, make_model, quantization, quantize):
    """The files as save_pretrained would split and name them, in one file."""
    torch.manual_seed(5)
    folder = OUT / name
    (folder / "twin").mkdir(parents=True, exist_ok=True)
    make_model().save_pretrained(folder / "twin")
    config = json.loads((folder / "twin" / "config.json").read_text())
    config["dtype"] = "bfloat16"
    (folder / "twin" / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": quantization}, indent=2) + "\n")
    stored, twin = {}, {}
    for key, value in load_file(folder / "twin" / "model.safetensors").items():
        parts, decoded = quantize(key, value)
        stored.update(parts)
        twin[key] = decoded.contiguous()
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    save_file(twin, folder / "twin" / "model.safetensors", {"format": "pt"})
    (folder / "twin" / "generation_config.json").unlink(missing_ok=True)
    for file in folder.rglob("*.safetensors"):
        file.chmod(0o644)


def fp8(key, value):
    if not key.endswith("_proj.weight") and not key.endswith(("q_a_proj.weight", "kv_a_proj_with_mqa.weight")):
        bf16 = value.bfloat16()
        return {key: bf16}, bf16
    rows, columns = value.shape
    blocks = (-(-rows // BLOCK), -(-columns // BLOCK))
    scales = torch.rand(blocks) * 1e-3 + 1e-4
    spread = scales.repeat_interleave(BLOCK, 0).repeat_interleave(BLOCK, 1)[:rows, :columns]
    values = (torch.randn(rows, columns) * 60).clamp(-448, 448).to(torch.float8_e4m3fn)
    return {key: values, key + "_scale_inv": scales}, (values.float() * spread).bfloat16()


def mxfp4(key, value):
    if not key.endswith(("gate_up_proj", "down_proj")):
        bf16 = value.bfloat16()
        return {key: bf16}, bf16
    experts, columns, rows = value.shape
    blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
    scales = torch.randint(116, 124, blocks.shape[:-1], dtype=torch.uint8)
    decoded = convert_moe_packed_tensors(blocks, scales, dtype=torch.bfloat16)
    assert decoded.shape == value.shape, (key, decoded.shape, value.shape)
    return {key + "_blocks": blocks, key + "_scales": scales}, decoded


if __name__ == "__main__":
    write("fp8", fp8_model, {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic",
                               "weight_block_size": [BLOCK, BLOCK]}, fp8)
    write("mxfp4", mxfp4_model, {"quant_method": "mxfp4"}, mxfp4)
