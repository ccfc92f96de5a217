"""The models that the benches run, as Hugging Face folders that every side reads: ours, C++ programs and peers.

Random weights of a Llama without shared embeddings, a tokenizer of one token a printable ASCII character, and sums as prompts. The names of
the sizes are labels; `parameters` counts what a token is multiplied with, which is what limits are computed from.
"""

import json
import random

SIZES = {  # name: hidden, layers, vocabulary
    "tiny": (64, 2, 97),
    "4m": (256, 4, 97),
    "29m": (512, 8, 8192),
    "124m": (768, 12, 32768),
}
POSITIONS = 2048
PROMPT_TOKENS = 8  # at most; the sums have 4 to 6


def head_size(size):
    return 64 if SIZES[size][0] >= 512 else 32


def layer_parameters(size):
    hidden, layers, _ = SIZES[size]
    return layers * (4 * hidden * hidden + 3 * hidden * 4 * hidden)


def parameters(size):
    """N: of all matrices but the table of embeddings, of which a token only reads a row."""
    hidden, _, vocabulary = SIZES[size]
    return layer_parameters(size) + hidden * vocabulary


def decode_flop(size, context):
    """Of one token with `context` tokens before it, attention included."""
    hidden, layers, _ = SIZES[size]
    return 2 * parameters(size) + 4 * layers * hidden * context


def training_flop(size, length):
    """Of one token of a sample of `length`, forward and backward, causal attention included."""
    hidden, layers, _ = SIZES[size]
    return 6 * parameters(size) + 6 * layers * hidden * length


def cached_values(size):
    """Of one token in a KV cache."""
    hidden, layers, _ = SIZES[size]
    return 2 * layers * hidden


def tokens_of(vocabulary):
    """Token by id: padding, end, the printable characters as byte-level tokenizers write them, and words that fill up the vocabulary."""
    printable = ["\u0120" if code == 32 else chr(code) for code in range(32, 127)]
    return ["<pad>", "<eos>", *printable, *(f"<{id}>" for id in range(97, vocabulary))]


def write_model(folder, size):
    """A folder without weights: the readers make random ones."""
    hidden, layers, vocabulary = SIZES[size]
    heads = hidden // head_size(size)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary, "hidden_size": hidden,
        "intermediate_size": 4 * hidden, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": heads,
        "head_dim": hidden // heads, "max_position_embeddings": POSITIONS, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
        "initializer_range": 0.02, "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False, "bos_token_id": None,
        "eos_token_id": 1, "pad_token_id": 0}))
    special = [{"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for id, content in enumerate(["<pad>", "<eos>"])]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": byte_level,
        "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": {token: id for id, token in enumerate(tokens_of(vocabulary))}, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<eos>", "pad_token": "<pad>"}))
    return folder


def sums(count=2048):
    """Prompts and answers, the same in every process."""
    stream = random.Random(0)
    pairs = [(stream.randint(0, 99), stream.randint(0, 99)) for _ in range(count)]
    return [{"prompt": f"{a}+{b}=", "label": str(a + b)} for a, b in pairs]


def write_prompts(path):
    path.write_text("".join(json.dumps(row) + "\n" for row in sums()))
    return path
