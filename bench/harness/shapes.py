"""The models that the benches run, as Hugging Face folders that every side reads: ours, C++ programs and peers.

Random weights, a tokenizer of one token a printable ASCII character, and sums as prompts. The names of the sizes are labels;
`parameters` counts what a token is multiplied with, which is what limits are computed from. The small ones are Llamas without
shared embeddings; 0.5b and 1.5b have the shapes of Qwen2.5-0.5B and Qwen2.5-1.5B.
"""

import dataclasses
import json
import random


@dataclasses.dataclass(frozen=True)
class Shape:
    hidden: int
    layers: int
    vocabulary: int
    heads: int
    kv_heads: int
    intermediate: int
    head_dim: int
    qwen: bool = False  # one table for embeddings and head, biases of queries, keys and values
    positions: int = 2048

    def layer_matrices(self):
        """Numbers in the matrices of a layer."""
        queries, keys = self.heads * self.head_dim, self.kv_heads * self.head_dim
        return self.hidden * (2 * queries + 2 * keys + 3 * self.intermediate)

    def all_parameters(self):
        """As they lie in memory: tables, norms and biases with them."""
        tables = self.vocabulary * self.hidden * (1 if self.qwen else 2)
        biases = (self.heads + 2 * self.kv_heads) * self.head_dim if self.qwen else 0
        return tables + self.layers * (self.layer_matrices() + 2 * self.hidden + biases) + self.hidden


def llama(hidden, layers, vocabulary):
    head_dim = 64 if hidden >= 512 else 32
    heads = hidden // head_dim
    return Shape(hidden, layers, vocabulary, heads, heads, 4 * hidden, head_dim)


SIZES = {
    "tiny": llama(64, 2, 97),
    "4m": llama(256, 4, 97),
    "29m": llama(512, 8, 8192),
    "124m": llama(768, 12, 32768),
    "0.5b": Shape(896, 24, 151936, 14, 2, 4864, 64, qwen=True, positions=32768),
    "1.5b": Shape(1536, 28, 151936, 12, 2, 8960, 128, qwen=True, positions=32768),
    "8b": Shape(4096, 32, 128256, 32, 8, 14336, 128, positions=32768),
}
PROMPT_TOKENS = 8  # at most; the sums have 4 to 6


def parameters(size):
    """N: of all matrices but the table of embeddings, of which a token only reads a row."""
    shape = SIZES[size]
    return shape.layers * shape.layer_matrices() + shape.hidden * shape.vocabulary


def decode_flop(size, context):
    """Of one token with `context` tokens before it, attention included."""
    shape = SIZES[size]
    return 2 * parameters(size) + 4 * shape.layers * shape.heads * shape.head_dim * context


def training_flop(size, length):
    """Of one token of a sample of `length`, forward and backward, causal attention included."""
    shape = SIZES[size]
    return 6 * parameters(size) + 6 * shape.layers * shape.heads * shape.head_dim * length


def cached_values(size):
    """Of one token in a KV cache."""
    shape = SIZES[size]
    return 2 * shape.layers * shape.kv_heads * shape.head_dim


def tokens_of(vocabulary):
    """Token by id: padding, end, the printable characters as byte-level tokenizers write them, and words that fill up the
    vocabulary."""
    printable = ["\u0120" if code == 32 else chr(code) for code in range(32, 127)]
    return ["<pad>", "<eos>", *printable, *(f"<{id}>" for id in range(97, vocabulary))]


def config_of(shape):
    """The config.json of a Llama or a Qwen2."""
    if shape.qwen:
        kind = {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "tie_word_embeddings": True,
                "use_sliding_window": False}
    else:
        kind = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "tie_word_embeddings": False,
                "attention_bias": False, "mlp_bias": False, "head_dim": shape.head_dim}
    return kind | {"vocab_size": shape.vocabulary, "hidden_size": shape.hidden, "intermediate_size": shape.intermediate,
                   "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads, "num_key_value_heads": shape.kv_heads,
                   "max_position_embeddings": shape.positions, "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "hidden_act": "silu",
                   "initializer_range": 0.02, "bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0}


def write_model(folder, size, positions=0):
    """A folder without weights: the readers make random ones. positions: as many at least."""
    shape = dataclasses.replace(SIZES[size], positions=max(positions, SIZES[size].positions))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config_of(shape)))
    special = [{"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for id, content in enumerate(["<pad>", "<eos>"])]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    (folder / "tokenizer.json").write_text(
        json.dumps({"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
                    "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
                    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                              "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                              "vocab": {token: id for id, token in enumerate(tokens_of(SIZES[size].vocabulary))}, "merges": []}}))
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
