#!/usr/bin/env python3
"""What other programs read of a run: h5py its checkpoint, transformers its exported weights.

    interchange_test.py h5py|transformers TESSERA        TESSERA: the program

A tiny Llama is trained for four steps on 2 x 2 x 2 ranks. h5py must show every tensor whole; transformers must compute the
logits that `tessera eval --logits` computes from the same exported folder.
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


def main():
    what, tessera = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    for tied in (False, True) if what == "transformers" else (False,):
        with tempfile.TemporaryDirectory() as folder:
            if what == "h5py":
                check_h5py(tessera, pathlib.Path(folder))
            else:
                check_transformers(tessera, pathlib.Path(folder), tied)


if __name__ == "__main__":
    main()
