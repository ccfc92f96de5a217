"""Rotary cosines and sines of Hugging Face transformers for every kind of scaling, for tests/models/kernels/rotary_test.cpp.

    python rotary_reference.py tests/golden/models/rotary.json
"""

import json
import pathlib
import sys

import torch
from transformers import StableLmConfig
from transformers.models.stablelm.modeling_stablelm import StableLmRotaryEmbedding

SHORT = [1.0 + 0.05 * i for i in range(8)]
LONG = [1.0 + 1.7 * i for i in range(8)]
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=8192)
LONGROPE = dict(rope_type="longrope", short_factor=SHORT, long_factor=LONG, original_max_position_embeddings=64)
YARN = dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=4096)

# Name, head size, lengths of samples, max_position_embeddings, rope_parameters.
CASES = [
    ("default", 16, [3, 131072], 131072, dict(rope_type="default", rope_theta=500000.0)),
    ("partial", 20, [100], 128, dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=0.4)),
    ("linear", 16, [4000], 4096, dict(rope_type="linear", rope_theta=10000.0, factor=2.5)),
    ("dynamic", 16, [64, 128, 129, 500], 128, dict(rope_type="dynamic", rope_theta=10000.0, factor=2.0)),
    ("dynamic_partial", 32, [300], 100, dict(rope_type="dynamic", rope_theta=10000.0, factor=3.5, partial_rotary_factor=0.5)),
    ("yarn", 128, [16384], 16384, dict(**YARN, rope_theta=1000000.0)),
    ("yarn_untruncated", 64, [5000], 16384, dict(**YARN, rope_theta=150000.0, truncate=False, beta_fast=24.0, beta_slow=2.0)),
    ("yarn_attention_factor", 16, [5000], 16384, dict(**YARN, rope_theta=10000.0, attention_factor=0.75)),
    ("yarn_mscale", 16, [5000], 16384, dict(**YARN, rope_theta=10000.0, mscale=1.0, mscale_all_dim=0.5)),
    ("llama3", 128, [20000], 131072, dict(**LLAMA3, rope_theta=500000.0)),
    ("longrope", 16, [64, 65, 200], 256, dict(**LONGROPE, rope_theta=10000.0)),
    ("longrope_attention_factor", 16, [30], 256, dict(**LONGROPE, rope_theta=10000.0, attention_factor=1.25)),
]


def table(head, length, positions, parameters):
    """A module of its own for each length: what it remembers of an earlier, longer sample would change the angles."""
    parameters = dict(parameters)
    parameters.setdefault("partial_rotary_factor", 1.0)  # StableLM's own default is less
    config = StableLmConfig(hidden_size=2 * head, num_attention_heads=2, max_position_embeddings=positions,
                            rope_parameters=parameters)
    module = StableLmRotaryEmbedding(config)
    cosines, sines = module(torch.zeros(1), torch.arange(length)[None])
    shown = sorted({0, 1, length // 3, length - 1})
    half = cosines.shape[-1] // 2
    rows = [cosines[0, p, :half].tolist() + sines[0, p, :half].tolist() for p in shown]
    return {"length": length, "positions": shown, "rows": rows}, module.attention_scaling


def rounded(value):
    """Nine digits: every float32 is told apart."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    return [rounded(item) for item in value] if isinstance(value, list) else value


def main(path):
    cases = []
    for name, head, lengths, positions, parameters in CASES:
        tables = [table(head, length, positions, parameters) for length in lengths]
        cases.append({"name": name, "head_dim": head, "max_positions": positions, "rope": parameters,
                      "attention_factor": tables[0][1], "tables": [shown for shown, _ in tables]})
    pathlib.Path(path).write_text(json.dumps(rounded(cases)) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
