"""Reference numbers for models/, from Hugging Face transformers and torch.optim.

    python transformer_reference.py make GOLDEN_FOLDER     writes tiny random models, their log-probabilities and gradients,
                                                           and a trace of AdamW
    python transformer_reference.py same FOLDER FOLDER     loads both with transformers: are their logits equal?
    python transformer_reference.py loads FOLDER           loads a folder with a value head, prints its values

Needs torch, transformers and safetensors. The tests read only what `make` wrote.
"""

import json
import math
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

SAMPLES = [7, 1, 12, 3]  # tokens of each sample
VOCAB = 48
COMMON = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.2, eos_token_id=[2, 5], bos_token_id=1)


def models():
    """Folder name, model, dtype it is stored in."""
    gqa = LlamaConfig(**COMMON, head_dim=12, rms_norm_eps=1e-5, rope_theta=500000.0, tie_word_embeddings=False)
    tied = dict(rms_norm_eps=1e-6, tie_word_embeddings=True)
    yield "llama_gqa", LlamaForCausalLM(gqa), None
    yield "llama_tied", LlamaForCausalLM(LlamaConfig(**COMMON, **tied)), torch.float16
    yield "qwen2", Qwen2ForCausalLM(Qwen2Config(**COMMON, **tied)), torch.bfloat16


def randomise(model, stored):
    """Norms and biases away from one and zero, so that leaving one out shows; weights exact in the dtype they are stored in."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
            if stored is not None:
                parameter.copy_(parameter.to(stored).float())


def write_model(model, stored, folder):
    model.to(stored or torch.float32).save_pretrained(folder)  # rounds the rotary buffers too: do not compute with it afterwards
    (folder / "generation_config.json").unlink(missing_ok=True)
    if folder.name == "llama_tied":  # the layout of transformers 4
        path = folder / "config.json"
        config = json.loads(path.read_text())
        config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
        config["rope_scaling"] = None
        config["torch_dtype"] = config.pop("dtype")
        path.write_text(json.dumps(config, indent=2) + "\n")


def reference(model):
    """Each sample alone, unpadded; the loss is a weighted sum of the log-probabilities of every token but the first."""
    model.eval()
    model.zero_grad()
    tokens, offsets, logprobs, loss = [], [0], [], 0.0
    for count in SAMPLES:
        sample = torch.randint(0, VOCAB, (count,))
        logits = model(sample[None]).logits[0].float()
        chosen = torch.log_softmax(logits[:-1], -1).gather(1, sample[1:, None])[:, 0]
        for value in chosen:
            loss = loss + math.cos(len(logprobs)) * value
            logprobs.append(value.item())
        tokens += sample.tolist()
        offsets.append(len(tokens))
    loss.backward()
    norms = {name: parameter.grad.norm().item() for name, parameter in model.named_parameters()}
    shown = ("model.norm.weight", "model.layers.0.input_layernorm.weight", "model.layers.0.self_attn.k_proj.weight",
             "model.layers.1.self_attn.v_proj.bias")
    gradients = {name: parameter.grad.flatten().tolist() for name, parameter in model.named_parameters() if name in shown}
    return {"tokens": tokens, "sample_offsets": offsets, "logprobs": logprobs, "gradient_norms": norms, "gradients": gradients}


def adamw_trace():
    """Three clipped steps on a matrix, which decays, and a vector, which does not."""
    torch.manual_seed(3)
    matrix, vector = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    options = dict(learning_rate=0.05, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, clip_grad_norm=1.5)
    groups = [{"params": [matrix], "weight_decay": options["weight_decay"]}, {"params": [vector], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options["learning_rate"], betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    trace = {"options": options, "matrix": matrix.flatten().tolist(), "vector": vector.tolist(), "steps": []}
    for scale in (1.0, 0.25, 0.01):
        matrix.grad, vector.grad = torch.randn(3, 5), torch.randn(5)
        step = {"scale": scale, "matrix_gradient": matrix.grad.flatten().tolist(), "vector_gradient": vector.grad.tolist()}
        for parameter in (matrix, vector):
            parameter.grad *= scale
        step["norm"] = torch.nn.utils.clip_grad_norm_([matrix, vector], options["clip_grad_norm"]).item()
        optimizer.step()
        step |= {"matrix": matrix.flatten().tolist(), "vector": vector.tolist()}
        trace["steps"].append(step)
    return trace


def rounded(value):
    """Nine digits: every float32 is told apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def make(golden):
    for name, model, stored in models():
        torch.manual_seed(len(name))
        model.apply(model._init_weights)
        randomise(model, stored)
        folder = golden / name
        write_model(model, stored, folder)
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
        (folder / "expected.json").write_text(json.dumps(rounded(reference(model))) + "\n")
    (golden / "adamw.json").write_text(json.dumps(rounded(adamw_trace())) + "\n")


def same(first, second):
    tokens = torch.arange(2, 2 + 16)[None]
    logits = [AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)(tokens).logits for folder in (first, second)]
    difference = (logits[0] - logits[1]).abs().max().item()
    print(f"largest difference of logits: {difference}")
    return 0 if difference == 0 else 1


def loads(folder):
    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=torch.float32)
    value = model(torch.arange(2, 9)[None]).logits.item()
    print(f"{type(model).__name__} with a head of shape {tuple(model.score.weight.shape)}, value {value}")
    return 0


if __name__ == "__main__":
    mode, *paths = sys.argv[1:]
    sys.exit({"make": make, "same": same, "loads": loads}[mode](*map(pathlib.Path, paths)))
