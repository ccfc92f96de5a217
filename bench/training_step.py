#!/usr/bin/env python3
"""What share of the GEMM peak does a training step reach, and how does it compare with eager torch?

usage: bench/training_step.py [--smoke | --quick] [--build FOLDER] [--peers FOLDER] [--rounds N] [--only TEXT]

4096 tokens in samples of 256, packed: hidden states, log-probabilities of every next token, backward, AdamW. Model FLOP are 6N a
token and 6 x layers x hidden x length for causal attention; what is computed twice counts once. The peer is a transformers model
with its own loss and fused AdamW, weights and optimizer in the precision itself."""

import collections
import pathlib
import tempfile

from harness import report, shapes
from harness.workers import PRECISIONS, Setting, Worker, cores

UTILISATION_GOAL = 0.85


def measure(setting, size, dtype, model, tokens, length):
    rates = collections.defaultdict(list)
    question, program = dict(tokens=tokens, length=length), setting.program("bench/programs/training")
    with setting.peak() as peak, Worker([program, model, dtype, cores()]) as ours, \
            setting.peer_if_there("train.py", "--model", model, "--dtype", dtype, "--threads", cores()) as peer:
        for side in filter(None, (ours, peer)):
            side.ask(**question)
        for _ in range(setting.rounds):
            rates["peak"].append(peak.flops(dtype))
            rates["ours"].append(tokens / ours.ask(**question)["seconds"])
            if peer:
                rates["peer"].append(tokens / peer.ask(**question)["seconds"])
    return rates


def show(setting, size, dtype, rates, length):
    case, flop = f"{size} {PRECISIONS[dtype]}", shapes.training_flop(size, length)
    gflops = {who: [rate * flop / 1e9 for rate in rates[who]] for who in ("ours", "peer")}
    peak = [rate / 1e9 for rate in rates["peak"]]
    report.show("training_step", f"{case}, share of the GEMM peak", "GFLOP/s", gflops["ours"], peak, at_least=UTILISATION_GOAL)
    if not rates["peer"]:
        return report.missing("training_step", f"{case}, eager torch", setting.without_peers())
    report.show("training_step", f"{case}, eager torch", "tokens/s", rates["ours"], rates["peer"])
    report.show("training_step", f"{case}, eager torch's share of the GEMM peak", "GFLOP/s", gflops["peer"], peak)


def main():
    setting = Setting(__doc__, rounds=3)
    sizes = ["tiny"] if setting.smoke else ["29m"] if setting.quick else ["29m", "124m"]
    tokens, length = (64, 16) if setting.smoke else (4096, 256)
    for size in sizes:
        for dtype in (dtype for dtype in PRECISIONS if setting.wants(f"{size} {PRECISIONS[dtype]}")):
            with tempfile.TemporaryDirectory() as folder:
                model = shapes.write_model(pathlib.Path(folder) / "model", size)
                show(setting, size, dtype, measure(setting, size, dtype, model, tokens, length), length)


if __name__ == "__main__":
    main()
