#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What other programs read of a run, and what it reads of theirs: h5py its checkpoint, transformers its exported weights, PyTorch's DCP.

    interchange_test.py h5py|transformers|dcp|tensorboard TESSERA        TESSERA: the program

A tiny Llama is trained for four steps on 2 x 2 x 2 ranks. h5py must show every tensor whole; transformers must compute the
logits that `tessera eval --logits` computes from the same exported folder. A DCP checkpoint with TorchTitan's names, written by two
ranks, must become the checkpoint that Hugging Face files with the same weights become.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "intermediate_size": 192, "vocab_size": 256, "rms_norm_eps": 1e-5, "rope_theta": 500000.0}


def job(folder, tied):
    (folder / "config.json").write_text(json.dumps({**CONFIG, "tie_word_embeddings": tied}))
    text = f"""
[job]
dump_folder = "{folder}/run"
[model]
hf_config = "{folder}/config.json"
[training]
dataset = "replay"
dataset_path = "{HERE.parent}/golden/llama_a/batches.safetensors"
seq_len = 64
local_batch_size = 4
global_batch_size = 8
steps = 4
mixed_precision_param = "float32"
[parallelism]
pipeline_parallel_degree = 2
tensor_parallel_degree = 2
[activation_checkpoint]
mode = "none"
[checkpoint]
enable = true
interval = 4
last_save_model_only = false
"""
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


def run(*words):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{words} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def trained(tessera, folder, tied):
    run(tessera, "launch", "-n", 8, "--", "train", job(folder, tied))
    return folder / "run" / "checkpoint" / "step-00000004"


def check_h5py(tessera, folder):
    print(run(sys.executable, HERE / "check_h5py.py", trained(tessera, folder, tied=False)))


def check_transformers(tessera, folder, tied):
    import torch
    import transformers
    from safetensors.numpy import load_file, save_file

    exported = folder / "exported"
    run(tessera, "ckpt", "export", trained(tessera, folder, tied), "--to", exported, "--format", "safetensors")
    ids = np.random.default_rng(1).integers(0, CONFIG["vocab_size"], (3, 48), dtype=np.int64)
    save_file({"input_ids": ids}, folder / "in.safetensors")
    run(tessera, "eval", "--logits", folder / "out.safetensors", "--input", folder / "in.safetensors",
        "--model.hf_config", exported / "config.json", "--checkpoint.initial_load_path", exported,
        "--checkpoint.initial_load_in_hf", "--training.mixed_precision_param", "float32")
    ours = load_file(folder / "out.safetensors")["logits"]
    model = transformers.AutoModelForCausalLM.from_pretrained(exported, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        theirs = model(torch.from_numpy(ids)).logits.numpy()
    worst = float(np.abs(ours - theirs).max())
    print(f"{'tied' if tied else 'untied'}: logits up to {np.abs(theirs).max():.3f}, largest difference {worst:.2e}")
    assert ours.shape == theirs.shape and np.abs(theirs).max() > 0.1 and worst <= 1e-5


def check_tokenizer(tessera, folder):
    """The exported folder of a run on text: transformers' tokenizer and ids are those of the run's."""
    import transformers

    words = ["--training.dataset", "c4_test", "--training.seq_len", 32, "--training.local_batch_size", 1, "--training.steps", 1,
             "--training.mixed_precision_param", "float32", "--lr_scheduler.warmup_steps", 1, "--job.dump_folder", folder / "text"]
    run(tessera, "train", *words, "--checkpoint.enable")
    exported = folder / "text.hf"
    run(tessera, "ckpt", "export", folder / "text", "--to", exported)
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported)
    model = transformers.AutoModelForCausalLM.from_pretrained(exported)
    text = "Dear Nora,\nthank you for the 12 walnuts; na\u00efve \U0001f41f."
    ours = subprocess.run([tessera, "tokenizer", "encode", "--tokenizer", exported], input=json.dumps(text) + "\n",
                          capture_output=True, text=True, check=True).stdout
    assert tokenizer.encode(text, add_special_tokens=False) == json.loads(ours)
    assert tokenizer.decode(json.loads(ours)) == text
    for settings in (tokenizer, model.config, model.generation_config):
        assert (settings.bos_token_id, settings.eos_token_id) == (2046, 2047), type(settings)
    print(f"AutoTokenizer: {len(tokenizer)} tokens")


def random_llama():
    """Weights of CONFIG's model by Hugging Face's names, and the same by TorchTitan's, whose heads interleave what RoPE rotates."""
    import torch
    generator = torch.Generator().manual_seed(7)
    hidden, inner, vocab = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    kv = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
    hf, titan = {}, {}

    def add(theirs, ours, *shape, heads=0):
        values = torch.randn(shape, generator=generator)
        hf[theirs] = values
        titan[ours] = values.view(heads, 2, -1, hidden).transpose(1, 2).reshape(shape) if heads else values.clone()

    add("model.embed_tokens.weight", "tok_embeddings.weight", vocab, hidden)
    for i in range(CONFIG["num_hidden_layers"]):
        theirs, ours = f"model.layers.{i}.", f"layers.{i}."
        add(theirs + "self_attn.q_proj.weight", ours + "attention.wq.weight", hidden, hidden, heads=CONFIG["num_attention_heads"])
        add(theirs + "self_attn.k_proj.weight", ours + "attention.wk.weight", kv, hidden, heads=CONFIG["num_key_value_heads"])
        add(theirs + "self_attn.v_proj.weight", ours + "attention.wv.weight", kv, hidden)
        add(theirs + "self_attn.o_proj.weight", ours + "attention.wo.weight", hidden, hidden)
        add(theirs + "mlp.gate_proj.weight", ours + "feed_forward.w1.weight", inner, hidden)
        add(theirs + "mlp.down_proj.weight", ours + "feed_forward.w2.weight", hidden, inner)
        add(theirs + "mlp.up_proj.weight", ours + "feed_forward.w3.weight", inner, hidden)
        add(theirs + "input_layernorm.weight", ours + "attention_norm.weight", hidden)
        add(theirs + "post_attention_layernorm.weight", ours + "ffn_norm.weight", hidden)
    add("model.norm.weight", "norm.weight", hidden)
    add("lm_head.weight", "output.weight", vocab, hidden)
    return hf, titan


def save_dcp(rank, folder):
    """One of two ranks that save as TorchTitan does: sharded parameters at the top, the optimizer's state and the rest beside them."""
    import torch
    import torch.distributed as dist
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import Shard, distribute_tensor
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,))
    state = {name: distribute_tensor(values, mesh, [Shard(0)]) for name, values in random_llama()[1].items()}
    moments = {f"optimizer.state.{name}.exp_avg": values for name, values in state.items()}
    rest = {"train_state": {"step": torch.tensor(3)}, "lr_scheduler": {"last_epoch": 3}, "dataloader": {"dp_rank_0": b"xyz"}}
    dcp.save({**state, **moments, **rest}, checkpoint_id=f"{folder}/step-3")
    dist.destroy_process_group()


def check_dcp(tessera, folder):
    import torch.multiprocessing
    from safetensors.torch import save_file

    torch.multiprocessing.spawn(save_dcp, (str(folder),), nprocs=2)
    convert = HERE.parent.parent / "share" / "tessera" / "dcp_to_safetensors.py"
    said = run(sys.executable, convert, folder / "step-3", folder / "safetensors", "--shard-gb", 2e-4)
    assert f"{len(random_llama()[1])} tensors" in said, said  # no moments among them
    assert len(list((folder / "safetensors").glob("*.safetensors"))) > 2
    job(folder, tied=False)
    run(tessera, "ckpt", "import", folder / "safetensors", "--to", folder / "from-dcp", "--config", folder / "job.toml", "--files", 2)
    (folder / "hf").mkdir()
    save_file(random_llama()[0], folder / "hf" / "model.safetensors")
    run(tessera, "ckpt", "import", folder / "hf", "--to", folder / "from-hf", "--config", folder / "job.toml")
    print(run(tessera, "ckpt", "diff", folder / "from-dcp", folder / "from-hf"))
    refused = subprocess.run([sys.executable, convert, folder / "hf", folder / "x"], capture_output=True, text=True)
    assert refused.returncode == 1 and "is no DCP checkpoint" in refused.stderr, refused.stderr


def scalars_of(folder):
    """What TensorBoard's own package finds below a folder: {tag: {step: value}}."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = EventAccumulator(str(folder), size_guidance={"scalars": 0, "tensors": 0}).Reload()
    return {tag: {e.step: e.value for e in found.Scalars(tag)} for tag in found.Tags()["scalars"]}


def check_tensorboard(tessera, folder):
    """Its scalars are those of metrics.jsonl, rounded to float32, on every rank."""
    run(tessera, "launch", "-n", 8, "--", "train", job(folder, tied=False), "--metrics.enable_tensorboard",
        "--metrics.save_tb_folder", "events", "--metrics.save_for_all_ranks", "--training.steps", 3)
    records = [json.loads(line) for line in (folder / "run/metrics.jsonl").read_text().splitlines()]
    wanted = {}
    for record in records:
        for name, value in record.items():
            if name != "step" and value is not None:
                wanted.setdefault(name, {})[record["step"]] = float(np.float32(value))
    (start,) = (folder / "run/events").iterdir()
    assert sorted(p.name for p in start.iterdir()) == [f"rank_{n}" for n in range(8)], list(start.iterdir())
    assert scalars_of(start / "rank_0") == wanted
    assert scalars_of(start / "rank_7")["loss"] == wanted["loss"]
    print(f"{len(wanted)} scalars of {len(records)} steps are the same")


def main():
    what, tessera = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    for tied in (False, True) if what == "transformers" else (False,):
        with tempfile.TemporaryDirectory() as folder:
            if what == "h5py":
                check_h5py(tessera, pathlib.Path(folder))
            elif what == "dcp":
                check_dcp(tessera, pathlib.Path(folder))
            elif what == "tensorboard":
                check_tensorboard(tessera, pathlib.Path(folder))
            else:
                check_transformers(tessera, pathlib.Path(folder), tied)
                if not tied:
                    check_tokenizer(tessera, pathlib.Path(folder))


if __name__ == "__main__":
    main()
