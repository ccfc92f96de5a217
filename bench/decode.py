#!/usr/bin/env python3
"""How fast does the generation engine decode, against the roofline of the machine and against transformers' generate?

usage: bench/decode.py [--smoke | --quick] [--build FOLDER] [--peers FOLDER] [--rounds N] [--only TEXT]

Samples with different prompts of `context` tokens, all read before the clock starts; then every step decodes one token of each.
The roofline of a step is the longer of two times: to read the weights of every matrix (each once) and the keys and values of all
contexts at the measured memory bandwidth, and to compute 2N FLOP a token and its attention at the measured GEMM peak. The peer's
time is that between its first and its last token. Cases are SIZE PRECISION, batch B, context C: a model of 29 million parameters,
and 16 samples of one of half a billion."""

import collections
import tempfile
import pathlib

from harness import report, shapes
from harness.workers import PRECISIONS, Setting, Worker, cores

BYTES = {"float32": 4, "bfloat16": 2}
ROOFLINE_GOAL, PEER_GOAL = 0.7, 3.0
LONG, MOST_ROUNDS_OF_LONG = 32768, 2  # prompts of so many tokens take the peer a minute to read


def roofline(size, dtype, batch, context, flops, bandwidth):
    """Tokens a second."""
    read = BYTES[dtype] * (shapes.parameters(size) + batch * context * shapes.cached_values(size))
    return batch / max(read / bandwidth, batch * shapes.decode_flop(size, context) / flops)


def measure(setting, peak, ours, peer, size, dtype, batch, context, steps):
    rates = collections.defaultdict(list)
    question = dict(batch=batch, context=context, steps=steps)
    for _ in range(min(setting.rounds, MOST_ROUNDS_OF_LONG) if batch * context > LONG else setting.rounds):
        rates["roofline"].append(roofline(size, dtype, batch, context + steps // 2, peak.flops(dtype), peak.bytes_per_second()))
        rates["ours"].append(batch * steps / ours.ask(ask="decode", **question)["seconds"])
        if peer:
            rates["peer"].append(batch * steps / peer.ask(**question)["seconds"])
    return rates


def show(setting, case, rates):
    report.show("decode", f"{case}, roofline", "tokens/s", rates["ours"], rates["roofline"], at_least=ROOFLINE_GOAL)
    if rates["peer"]:
        report.show("decode", f"{case}, transformers", "tokens/s", rates["ours"], rates["peer"], at_least=PEER_GOAL)
    else:
        report.missing("decode", f"{case}, transformers", setting.without_peers())


def cells(setting, size):
    """(batch, context, steps)"""
    if setting.smoke:
        return [(2, 16, 4)]
    if size == "0.5b":
        return [(16, 128, 32)]
    contexts = [128] if setting.quick else [128, 1024]
    return [(batch, context, 32) for context in contexts for batch in (1, 16, 64)]


def run(setting, size, dtype, folder):
    wanted = [(cell, case) for cell in cells(setting, size)
              if setting.wants(case := f"{size} {PRECISIONS[dtype]}, batch {cell[0]}, context {cell[1]}")]
    if not wanted:
        return
    program = setting.program("bench/programs/generation")
    with setting.peak() as peak, Worker([program, folder, dtype, cores()]) as ours, \
            setting.peer_if_there("generate.py", "--model", folder, "--dtype", dtype, "--threads", cores()) as peer:
        for side in filter(None, (ours, peer)):
            side.ask(ask="decode", batch=2, context=16, steps=2)
        for cell, case in wanted:
            show(setting, case, measure(setting, peak, ours, peer, size, dtype, *cell))


if __name__ == "__main__":
    setting = Setting(__doc__, rounds=3)
    sizes = ({"tiny": PRECISIONS} if setting.smoke else {"29m": PRECISIONS}
             if setting.quick else {"29m": PRECISIONS, "0.5b": ["bfloat16"]})
    with tempfile.TemporaryDirectory() as folder:
        for size, dtypes in sizes.items():
            model = shapes.write_model(pathlib.Path(folder) / size, size)
            for dtype in dtypes:
                run(setting, size, dtype, model)
