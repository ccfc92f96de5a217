"""Folders that models/folder/folder.h has written, loaded by transformers (and PEFT): same keys, equal weights, equal logits.

    python3 folder_round_trip.py DRIVER GOLDEN_FOLDER

DRIVER is folder_driver.cpp; every folder in GOLDEN_FOLDER with a config.json goes through all of its modes. Also: the names of
the tensors are those that the converter of llama.cpp looks for.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import gguf
import torch
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.utils import logging

IDS = [7, 1, 12, 3, 40, 5, 9]  # short: rotary positions that remember the longest sample stay as they were
GGUF = {"llama": "LLAMA", "mistral": "LLAMA", "qwen2": "QWEN2", "qwen3": "QWEN3", "phi3": "PHI3", "gpt2": "GPT2",
        "gemma2": "GEMMA2", "gemma3_text": "GEMMA3", "olmo2": "OLMO2", "olmo3": "OLMO2", "smollm3": "SMOLLM3", "glm4": "GLM4",
        "qwen2_moe": "QWEN2MOE", "qwen3_moe": "QWEN3MOE", "mixtral": "LLAMA"}


def load(folder, kind=AutoModelForCausalLM, dtype=torch.float32, ignored=()):
    model, info = kind.from_pretrained(folder, dtype=dtype, output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        left = [key for key in info[what] if key not in ignored]
        assert not left, f"{folder}: {what}: {left}"
    return model.eval()


def logits(model):
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits.float()


def same(source, target, dtype=torch.float32):
    """Weights to the bit. Of the logits the last ones depend on where in memory the weights lie: one product of a vector is
    enough."""
    ours, theirs = load(target, dtype=dtype), load(source, dtype=dtype)
    weights, expected = ours.state_dict(), theirs.state_dict()
    assert weights.keys() == expected.keys(), f"not in both: {weights.keys() ^ expected.keys()}"
    for name, weight in expected.items():
        assert torch.equal(weights[name], weight), f"{name} is another one"
    difference, largest = (logits(ours) - logits(theirs)).abs().max().item(), logits(theirs).abs().max().item()
    assert difference <= 16 * torch.finfo(dtype).eps * largest, f"logits differ by {difference}"


def bfloat16(source, target):
    same(source, target, dtype=torch.bfloat16)


def critic(source, target):
    """The hidden state of the last token times 0, 0.01, 0.02, ..."""
    config = json.loads((target / "config.json").read_text())
    assert config["architectures"][0].endswith("ForSequenceClassification") and config["num_labels"] == 1
    base = load(source).base_model
    with torch.no_grad():
        hidden = base(torch.tensor([IDS])).last_hidden_state[0, -1]
    expected = hidden @ (0.01 * torch.arange(len(hidden)))
    value = logits(load(target, AutoModelForSequenceClassification)).item()
    assert abs(value - expected.item()) < 1e-5, f"{value}, not {expected.item()}"


def step(source, target):
    model = load(source)
    ids = torch.tensor(IDS)
    chosen = torch.log_softmax(model(ids[None]).logits[0, :-1], -1).gather(1, ids[1:, None])
    (-chosen.mean()).backward()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.grad is not None:
                parameter -= 0.05 * parameter.grad
    difference = (logits(model) - logits(load(target))).abs().max().item()
    assert difference < 1e-4, f"logits differ by {difference}"
    assert (logits(model) - logits(load(source))).abs().max() > 1e-3, "the step changed nothing"


def unmerged(source, target, kind=AutoModelForCausalLM, **options):
    """The folder's own model with the adapter that PEFT loads beside it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # PEFT warns of keys that are missing or left over
        return PeftModel.from_pretrained(kind.from_pretrained(source, dtype=torch.float32, **options), target / "adapter").eval()


def lora(source, target):
    merged, plain = logits(load(target)), logits(load(source))
    assert (merged - plain).abs().max() > 1e-3, "the adapter changes nothing"
    difference = (merged - logits(unmerged(source, target))).abs().max().item()
    assert difference < 1e-5 * max(1, merged.abs().max().item()), f"logits differ by {difference}"


def lora_critic(source, target):
    value = logits(load(target, AutoModelForSequenceClassification)).item()
    other = logits(unmerged(source, target, AutoModelForSequenceClassification, num_labels=1)).item()
    assert abs(value - other) < 1e-5 * max(1, abs(value)), f"value {value}, not {other}"


def names(source, target):
    """Every tensor of the saved folder is one that the converter to GGUF maps. It knows no layers of a Qwen-MoE that have an
    MLP."""
    from safetensors import safe_open
    config = json.loads((source / "config.json").read_text())
    architecture = gguf.MODEL_ARCH[GGUF[config["model_type"]]]
    layers = config.get("num_hidden_layers", config.get("n_layer"))
    table = gguf.get_tensor_name_map(architecture, layers)
    with safe_open(target / "model.safetensors", "pt") as tensors:
        assert tensors.metadata()["format"] == "pt"
        for name in tensors.keys():
            if GGUF[config["model_type"]].endswith("MOE") and re.search(r"\.mlp\.(gate|up|down)_proj\.", name):
                continue
            joined = re.sub(r"\.experts\.\d+\.", ".experts.", name)  # the converter puts a layer's experts into one tensor
            assert table.get_name(joined, (".weight", ".bias")), f"GGUF has no name for {name}"


def main(driver, golden):
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    # of transformers against itself: thousands, between which a failure is not seen
    warnings.simplefilter("ignore", FutureWarning)
    process = subprocess.Popen([driver], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    failed = 0
    folders = sorted(path.parent for path in pathlib.Path(golden).glob("*/config.json"))
    assert folders, f"{golden} holds no models"
    for source in folders:
        for mode, check in (("same", same), ("shards", same), ("bfloat16", bfloat16), ("critic", critic), ("step", step),
                            ("lora", lora), ("lora_critic", lora_critic),
                            ("same", names)):
            with tempfile.TemporaryDirectory() as temporary:
                target = pathlib.Path(temporary) / "saved"
                process.stdin.write("\t".join(map(str, (mode, source, target, *IDS))) + "\n")
                process.stdin.flush()
                answer = process.stdout.readline().strip()
                try:
                    assert answer == "done", answer
                    check(source, target)
                except Exception as error:  # the others are still of interest
                    failed += 1
                    print(f"{source.name}: {check.__name__} after {mode}: {error}", flush=True)
    process.stdin.close()
    print(f"{len(folders)} folders, {failed} failures")
    return 1 if failed or process.wait() != 0 else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
