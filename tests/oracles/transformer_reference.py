"""Reference numbers for models/, from Hugging Face transformers and torch.optim.

    python transformer_reference.py make GOLDEN_FOLDER     writes tiny random models of every family, their log-probabilities
                                                           and gradients, the defaults of each family, and a trace of AdamW
    python transformer_reference.py same FOLDER FOLDER     loads both with transformers: are their logits equal?
    python transformer_reference.py loads FOLDER           loads a folder with a value head, prints its values

Needs torch, transformers and safetensors. The tests read only what `make` wrote.
"""

import json
import math
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification

SAMPLES = [7, 1, 12, 3]  # tokens of each sample
VOCAB = 48
COMMON = dict(vocab_size=VOCAB, hidden_size=32, intermediate_size=40, num_hidden_layers=2, num_attention_heads=4,
              num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.2, eos_token_id=[2, 5], bos_token_id=1)
SMALL = COMMON | dict(intermediate_size=24, pad_token_id=None, tie_word_embeddings=False)
GPT2 = dict(vocab_size=VOCAB, n_embd=32, n_layer=2, n_head=4, n_positions=16, initializer_range=0.2, bos_token_id=1,
            eos_token_id=2)
MIXTURE = SMALL | dict(num_experts=6, num_experts_per_tok=2, moe_intermediate_size=16)
FAMILIES = ("llama", "mistral", "qwen2", "qwen3", "phi3", "gpt2", "gemma2", "gemma3_text", "olmo2", "olmo3", "smollm3", "glm4",
            "qwen2_moe", "qwen3_moe", "mixtral")
F16, BF16 = torch.float16, torch.bfloat16

# How config.json is written: as transformers 5 does, or with the keys of transformers 4.
NOW, BEFORE = "5", "4"


def rope(kind, **rest):
    return dict(rope_parameters={"rope_type": kind, "rope_theta": 10000.0} | rest)


def ropes(full, sliding=10000.0):
    """Of layers without a window, and the base of those with one."""
    return dict(rope_parameters={"full_attention": {"rope_type": "default", "rope_theta": 10000.0} | full,
                                 "sliding_attention": {"rope_type": "default", "rope_theta": sliding}})


def models():
    """Folder name, model type, what its configuration says, dtype it is stored in, layout of config.json."""
    tied = dict(rms_norm_eps=1e-6, tie_word_embeddings=True)
    yield "llama_gqa", "llama", COMMON | dict(head_dim=12, rms_norm_eps=1e-5, rope_theta=500000.0), None, NOW
    yield "llama_tied", "llama", COMMON | tied, F16, BEFORE
    yield "llama_mqa_biases", "llama", SMALL | dict(num_key_value_heads=1, attention_bias=True, mlp_bias=True), BF16, BEFORE
    # Wavelengths on both sides of, and between, the two bounds.
    yield "llama_llama3", "llama", SMALL | rope("llama3", rope_theta=100.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                original_max_position_embeddings=32), BF16, NOW
    yield "llama_linear", "llama", SMALL | rope("linear", factor=4.0), BF16, BEFORE
    yield "llama_dynamic", "llama", SMALL | dict(max_position_embeddings=8) | rope("dynamic", factor=2.0), F16, NOW
    yield "llama_yarn", "llama", SMALL | dict(head_dim=16, max_position_embeddings=256) | rope(
        "yarn", factor=4.0, original_max_position_embeddings=64), BF16, NOW
    yield "llama_yarn_mscale", "llama", SMALL | rope("yarn", rope_theta=100.0, factor=4.0, original_max_position_embeddings=16,
                                                     beta_fast=4.0, beta_slow=0.5, mscale=0.8, mscale_all_dim=0.3,
                                                     truncate=False), BF16, BEFORE
    yield "mistral_window", "mistral", SMALL | dict(sliding_window=5), BF16, NOW
    yield "mistral", "mistral", SMALL | dict(sliding_window=None, head_dim=12), F16, BEFORE
    yield "qwen2", "qwen2", COMMON | tied, BF16, NOW
    yield "qwen2_window", "qwen2", SMALL | dict(use_sliding_window=True, sliding_window=4, max_window_layers=1), BF16, BEFORE
    yield "qwen2_layer_types", "qwen2", SMALL | dict(use_sliding_window=True, sliding_window=4, max_window_layers=0,
                                                     layer_types=["sliding_attention", "full_attention"]), BF16, NOW
    yield "qwen3", "qwen3", SMALL | tied | dict(head_dim=12), BF16, NOW
    yield "qwen3_biases", "qwen3", SMALL | dict(head_dim=8, attention_bias=True), BF16, BEFORE
    yield "phi3_window", "phi3", SMALL | dict(sliding_window=5, num_key_value_heads=4), BF16, BEFORE
    # Six of eight dimensions of a head turn; one sample is longer than the original positions, the others are not.
    factors = dict(short_factor=[1.0, 1.25, 1.5], long_factor=[1.0, 2.5, 6.0], partial_rotary_factor=0.75)
    yield "phi3_longrope", "phi3", SMALL | dict(original_max_position_embeddings=8) | rope("longrope", **factors), BF16, NOW
    yield "phi3_su", "phi3", SMALL | dict(original_max_position_embeddings=8, tie_word_embeddings=True) | rope(
        "longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0]), BF16, BEFORE
    yield "llama_longrope", "llama", SMALL | rope("longrope", short_factor=[1.0, 1.1, 1.2, 1.3], long_factor=[1.0, 2.0, 3.0, 4.0],
                                                  factor=2.0, attention_factor=1.2, original_max_position_embeddings=8), F16, NOW
    yield "gpt2", "gpt2", GPT2 | dict(n_inner=40), BF16, NOW
    yield "gpt2_bare", "gpt2", GPT2 | dict(activation_function="gelu", tie_word_embeddings=False, n_embd=24), F16, BEFORE
    gemma = dict(tie_word_embeddings=True, query_pre_attn_scalar=24, sliding_window=5)
    yield "gemma2", "gemma2", SMALL | gemma | dict(head_dim=12, attn_logit_softcapping=5.0,
                                                   final_logit_softcapping=3.0), BF16, NOW
    yield "gemma2_no_softcap", "gemma2", SMALL | gemma | dict(head_dim=8, num_hidden_layers=3, intermediate_size=16,
                                                              attn_logit_softcapping=None,
                                                              final_logit_softcapping=None), BF16, BEFORE
    gemma = SMALL | gemma | dict(head_dim=12, num_hidden_layers=3)
    yield "gemma3", "gemma3_text", gemma | ropes(dict(rope_theta=1000.0), 20.0) | dict(
        layer_types=["sliding_attention", "full_attention", "sliding_attention"], final_logit_softcapping=3.0), BF16, NOW
    yield "gemma3_linear", "gemma3_text", gemma | ropes(dict(rope_theta=100.0, rope_type="linear", factor=4.0), 50.0) | dict(
        sliding_window_pattern=2, intermediate_size=16), F16, BEFORE
    yield "olmo2", "olmo2", SMALL, BF16, BEFORE
    olmo = SMALL | dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"])
    yield "olmo3", "olmo3", olmo | ropes(dict(rope_theta=1000.0), 100.0), F16, NOW
    yield "olmo3_yarn", "olmo3", SMALL | dict(sliding_window=5, num_hidden_layers=4, intermediate_size=16) | ropes(
        dict(rope_theta=500000.0, rope_type="yarn", factor=8.0, original_max_position_embeddings=8), 500000.0), BF16, BEFORE
    yield "smollm3", "smollm3", SMALL | dict(num_hidden_layers=3, no_rope_layers=[1, 0, 1]), BF16, NOW
    yield "smollm3_window", "smollm3", SMALL | tied | dict(
        num_hidden_layers=3, no_rope_layer_interval=2, use_sliding_window=True, sliding_window=5, attention_bias=True,
        intermediate_size=16), F16, BEFORE
    # Half of a head turns; all of it.
    yield "glm4", "glm4", SMALL | dict(head_dim=12, rms_norm_eps=1e-5), BF16, NOW
    yield "glm4_no_biases", "glm4", SMALL | tied | dict(head_dim=8, attention_bias=False) | rope(
        "default", partial_rotary_factor=1.0), F16, BEFORE
    yield "qwen3_moe", "qwen3_moe", MIXTURE | dict(head_dim=12, norm_topk_prob=True), BF16, NOW
    # So many experts that some have no token.
    yield "qwen3_moe_of_many", "qwen3_moe", MIXTURE | tied | dict(head_dim=8, num_experts=24, moe_intermediate_size=8,
                                                                  attention_bias=True, norm_topk_prob=False), F16, BEFORE
    yield "qwen2_moe", "qwen2_moe", MIXTURE | dict(shared_expert_intermediate_size=20), BF16, BEFORE
    yield "qwen2_moe_normalised", "qwen2_moe", MIXTURE | tied | dict(shared_expert_intermediate_size=12, norm_topk_prob=True,
                                                                     num_experts_per_tok=3, qkv_bias=False), F16, NOW
    # Layers that have an MLP instead: two of four, the first of three.
    yield "qwen2_moe_mixed", "qwen2_moe", MIXTURE | dict(num_hidden_layers=4, decoder_sparse_step=2,
                                                         shared_expert_intermediate_size=20), BF16, NOW
    yield "qwen3_moe_mixed", "qwen3_moe", MIXTURE | dict(num_hidden_layers=3, mlp_only_layers=[0], head_dim=12,
                                                         norm_topk_prob=True), F16, BEFORE
    sparse = SMALL | dict(num_local_experts=5, num_experts_per_tok=2)
    yield "mixtral", "mixtral", sparse, BF16, NOW
    yield "mixtral_window", "mixtral", sparse | dict(sliding_window=5, head_dim=12, num_experts_per_tok=3), F16, BEFORE


def randomise(model, stored):
    """Norms and biases away from one and zero, so that leaving one out shows; weights exact in the dtype they are stored in."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias") or "norm" in name or ".ln_" in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
            if stored is not None:
                parameter.copy_(parameter.to(stored).float())


def to_layout_of_4(config):
    """config.json as transformers 4 wrote it: rope_theta and rope_scaling at the top, torch_dtype, no layer_types."""
    config["torch_dtype"] = config.pop("dtype")
    config.pop("layer_types", None)
    if config["model_type"] == "qwen3_moe":
        config["num_experts"] = config.pop("num_local_experts")
    config.pop("no_rope_layers", None)
    parameters = config.pop("rope_parameters", None)
    if parameters is None:
        return
    by_layers = "full_attention" in parameters
    if by_layers:  # a base of the layers with a window; what else there is stretches the others
        if config["model_type"] == "gemma3_text":
            config["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
        parameters = parameters["full_attention"]
    config["rope_theta"] = parameters.pop("rope_theta")
    if "partial_rotary_factor" in parameters:
        config["partial_rotary_factor"] = parameters.pop("partial_rotary_factor")
    kind = parameters.pop("rope_type")
    kind_key = "rope_type" if by_layers else "type"  # the older name, which younger families never had
    config["rope_scaling"] = None if kind == "default" else {kind_key: kind} | parameters
    if kind == "longrope":
        config["rope_scaling"]["type"] = "su"  # its first name


def to_bare_names(path, positions):
    """The tensors of a GPT-2 as its first checkpoints hold them: without a prefix, with the causal mask of each layer."""
    tensors = {name.removeprefix("transformer."): tensor for name, tensor in load_file(path).items()}
    mask = torch.ones(positions, positions).tril()[None, None]
    layers = {name.split(".")[1] for name in tensors if name.startswith("h.")}
    save_file(tensors | {f"h.{layer}.attn.bias": mask.clone() for layer in sorted(layers)}, path, {"format": "pt"})


def write_model(model, stored, layout, folder):
    model.to(stored or torch.float32).save_pretrained(folder)  # rounds the rotary buffers too: do not compute with it afterwards
    (folder / "generation_config.json").unlink(missing_ok=True)
    if layout == BEFORE:
        path = folder / "config.json"
        config = json.loads(path.read_text())
        to_layout_of_4(config)
        path.write_text(json.dumps(config, indent=2) + "\n")
    if folder.name == "phi3_longrope":  # as Phi-3 was published: the original length stands at the top only
        path = folder / "config.json"
        config = json.loads(path.read_text())
        del config["rope_parameters"]["original_max_position_embeddings"]
        path.write_text(json.dumps(config, indent=2) + "\n")
    if folder.name.endswith("_bare"):
        to_bare_names(folder / "model.safetensors", model.config.n_positions)


def chosen_logprobs(model, sample):
    """Of every token of `sample` but the first, given those before it. float32 from the logits on."""
    # Rotary embeddings that depend on the length remember the longest sample they saw; each sample stands alone here.
    inner = getattr(model, "model", None)
    if hasattr(inner, "rotary_emb"):
        inner.rotary_emb = type(inner.rotary_emb)(model.config)
    logits = model(sample[None]).logits[0].float()
    return torch.log_softmax(logits[:-1], -1).gather(1, sample[1:, None])[:, 0]


def experts(name, tensor, config):
    """All experts of a layer, one by one, under the names of the file."""
    layer, last = name.rsplit(".", 1)
    names = ("gate_proj", "up_proj", "down_proj")
    if config.model_type == "mixtral":
        layer, names = layer.replace(".mlp.", ".block_sparse_moe."), ("w1", "w3", "w2")
    for number, expert in enumerate(tensor):
        halves = zip(names[:2], expert.chunk(2)) if last == "gate_up_proj" else [(names[2], expert)]
        yield from ((f"{layer}.{number}.{projection}.weight", half) for projection, half in halves)


def parts(name, tensor, config):
    """A parameter as models/layers/weights.h holds it: [outputs, inputs], and fused projections apart, as (name, tensor)
    pairs."""
    if tensor.dim() == 3:
        return experts(name, tensor, config)
    if config.model_type == "mixtral":
        name = name.replace(".mlp.gate.", ".block_sparse_moe.gate.")
    if config.model_type == "gpt2" and tensor.dim() == 2 and ".h." in name:
        tensor = tensor.T
    if "c_attn." in name or "qkv_proj." in name:
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        queries = config.num_attention_heads * head_dim
        keys = (len(tensor) - queries) // 2
        return zip((f"{name}[query]", f"{name}[key]", f"{name}[value]"), tensor.split([queries, keys, keys]))
    if "gate_up_proj." in name:
        return zip((f"{name}[gate]", f"{name}[up]"), tensor.chunk(2))
    return [(name, tensor)]


def is_shown(name, gradient, last_layer):
    """A few gradients are written in full: short ones of the last layer, its projection of keys, its router and an expert, and
    what is not in a layer."""
    keys = any(part in name for part in ("k_proj.weight", ".weight[key]", ".gate.weight", "expert_gate.weight", "experts.0."))
    in_last = f"layers.{last_layer}." in name or f"h.{last_layer}." in name
    outside = ".layers." not in name and ".h." not in name
    return (in_last and (gradient.numel() <= 64 or keys)) or (outside and gradient.dim() == 1)


def rotary(model):
    """What config.json comes to for a short sample; {} for a model without rotary positions."""
    inner = getattr(model, "model", None)
    if not hasattr(inner, "rotary_emb"):
        return {}
    fresh = type(inner.rotary_emb)(model.config)
    if hasattr(fresh, "full_attention_inv_freq"):  # those of the layers without a window
        return {"attention_factor": float(fresh.full_attention_attention_scaling),
                "inverse_frequencies": fresh.full_attention_inv_freq.tolist()}
    return {"attention_factor": float(fresh.attention_scaling), "inverse_frequencies": fresh.inv_freq.tolist()}


def reference(folder):
    """Each sample alone, unpadded; the loss is a weighted sum of the log-probabilities of every token but the first."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    half = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.bfloat16).eval()  # leaves the rotary buffers in float32
    tokens, offsets, logprobs, in_bfloat16, loss = [], [0], [], [], 0.0
    for count in SAMPLES:
        sample = torch.randint(0, VOCAB, (count,))
        for value in chosen_logprobs(model, sample):
            loss = loss + math.cos(len(logprobs)) * value
            logprobs.append(value.item())
        with torch.no_grad():
            in_bfloat16 += chosen_logprobs(half, sample).tolist()
        tokens += sample.tolist()
        offsets.append(len(tokens))
    loss.backward()
    gradients = dict(pair for name, parameter in model.named_parameters() for pair in parts(name, parameter.grad, model.config))
    last = model.config.num_hidden_layers - 1
    shown = {name: gradient for name, gradient in gradients.items() if is_shown(name, gradient, last)}
    return {"rotary": rotary(model), "tokens": tokens, "sample_offsets": offsets,
            "logprobs": logprobs, "logprobs_bfloat16": in_bfloat16,
            "gradient_norms": {name: gradient.norm().item() for name, gradient in gradients.items()},
            "gradients": {name: gradient.flatten().tolist() for name, gradient in shown.items()}}


def defaults():
    """What each family takes for the keys that a config.json does not have."""
    result = {}
    for family in FAMILIES:
        config = json.loads(AutoConfig.for_model(family).to_json_string(use_diff=False))
        left_out = ("transformers_version", "layer_types")
        result[family] = {key: value for key, value in sorted(config.items()) if key not in left_out}
    return result


def adamw_trace():
    """Three clipped steps on a matrix, which decays, and a vector, which does not."""
    torch.manual_seed(3)
    matrix, vector = torch.randn(3, 5, requires_grad=True), torch.randn(5, requires_grad=True)
    options = dict(learning_rate=0.05, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, clip_grad_norm=1.5)
    groups = [{"params": [matrix], "weight_decay": options["weight_decay"]}, {"params": [vector], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=options["learning_rate"], betas=(options["beta1"], options["beta2"]),
                                  eps=options["eps"])
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


def adamw_groups_trace():
    """Steps of parameter groups: a matrix that learns slowly, a vector that decays, and a matrix and a vector in no group."""
    torch.manual_seed(4)
    shapes = {"slow.weight": (3, 5), "plain.weight": (4, 7), "plain.norm": (7,), "decayed.norm": (5,)}
    tensors = {name: torch.randn(shape, requires_grad=True) for name, shape in shapes.items()}
    options = dict(learning_rate=0.05, beta1=0.8, beta2=0.95, eps=1e-6, weight_decay=0.1, clip_grad_norm=1.5)
    groups = [{"match": "slow.*", "learning_rate_scale": 0.25}, {"match": "dec*", "weight_decay": 0.3}]
    rate, decay = options["learning_rate"], options["weight_decay"]
    parameters = [{"params": [tensors["slow.weight"]], "lr": rate * 0.25, "weight_decay": decay},
                  {"params": [tensors["plain.weight"]], "weight_decay": decay},
                  {"params": [tensors["plain.norm"]], "weight_decay": 0.0},
                  {"params": [tensors["decayed.norm"]], "weight_decay": 0.3}]
    optimizer = torch.optim.AdamW(parameters, lr=rate, betas=(options["beta1"], options["beta2"]), eps=options["eps"])
    flat = lambda: {name: tensor.flatten().tolist() for name, tensor in tensors.items()}
    trace = {"options": options, "groups": groups, "shapes": shapes, "begin": flat(), "steps": []}
    for _ in range(4):
        for tensor in tensors.values():
            tensor.grad = torch.randn(tensor.shape)
        step = {"gradients": {name: tensor.grad.flatten().tolist() for name, tensor in tensors.items()}}
        torch.nn.utils.clip_grad_norm_(list(tensors.values()), options["clip_grad_norm"])
        optimizer.step()
        trace["steps"].append(step | {"weights": flat()})
    return trace


def rounded(value):
    """Nine digits: every float32 is told apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, (list, tuple)) else value


def make(golden):
    for name, model_type, settings, stored, layout in models():
        torch.manual_seed(len(name))
        config = AutoConfig.for_model(model_type, **settings)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        randomise(model, stored)
        write_model(model, stored, layout, golden / name)
        (golden / name / "expected.json").write_text(json.dumps(rounded(reference(golden / name))) + "\n")
    (golden / "defaults.json").write_text(json.dumps(defaults(), indent=1) + "\n")
    (golden / "adamw.json").write_text(json.dumps(rounded(adamw_trace())) + "\n")
    (golden / "adamw_groups.json").write_text(json.dumps(rounded(adamw_groups_trace())) + "\n")


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
