#!/usr/bin/env python3
"""How much faster are the prompts of a group of 16 samples read when they are one prompt than when they are 16 different ones?

usage: bench/shared_prefill.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

The engine reads 16 prompts of 512 tokens and samples the first token of each; no prompt is asked twice. The goal is 12 times: a
sixteenth of the prompts, and 16 rows of logits either way."""

import pathlib
import tempfile

from harness import report, shapes
from harness.workers import PRECISIONS, Setting, Worker, cores

GOAL = 12


def main():
    setting = Setting(__doc__, rounds=5)
    size, samples, prompt = ("tiny", 2, 16) if setting.smoke else ("29m", 16, 512)
    with tempfile.TemporaryDirectory() as folder:
        model = shapes.write_model(pathlib.Path(folder) / "model", size)
        for dtype in (dtype for dtype in PRECISIONS if setting.wants(PRECISIONS[dtype])):
            with Worker([setting.program("bench/programs/generation"), model, dtype, cores()]) as ours:
                ours.ask(ask="prefill", samples=samples, prompt=prompt, shared=True)
                seconds = [[ours.ask(ask="prefill", samples=samples, prompt=prompt, shared=shared)["seconds"]
                            for shared in (True, False)] for _ in range(setting.rounds)]
            together, apart = ([1 / pair[side] for pair in seconds] for side in (0, 1))
            case = f"{PRECISIONS[dtype]}, {samples} samples of a prompt of {prompt}"
            report.show("shared_prefill", case, "groups/s", together, apart, at_least=GOAL)


if __name__ == "__main__":
    main()
