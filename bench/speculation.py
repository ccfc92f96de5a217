#!/usr/bin/env python3
"""Does it pay to guess the next tokens of a sample and compute them beside the one that is due? Against the same engine that does not guess.

usage: bench/speculation.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

Both sample the same tokens, to the bit, in turn. Of a model with random weights the likeliest text soon repeats itself: how often a guess is right
is told as the steps that are saved, since it is the text's and not ours. Text that is drawn at random repeats nothing: there nothing may be lost.
"auto" guesses while one sample runs alone, "ngrams" whatever runs beside. Cases are SIZE PRECISION, batch B, text, mode."""

import collections
import pathlib
import tempfile

import report
import shapes
from workers import PRECISIONS, Setting, Worker, cores

REPEATS_GOAL, NOTHING_LOST = 1.3, 0.97
GUESSED = 8


def run(setting, size, dtype, folder):
    tokens = 16 if setting.smoke else 96 if setting.quick else 192
    with Worker([setting.program("bench/programs/generation"), folder, dtype, cores()]) as worker:
        worker.ask(ask="continue", samples=1, prompt=16, tokens=4, likeliest=True, drafts=0, alone=0)
        for batch, likeliest, mode in ((1, True, "auto"), (1, False, "auto"), (4, True, "auto"), (16, True, "auto"), (16, True, "ngrams")):
            text = "repeats itself" if likeliest else "repeats nothing"
            case = f"{size} {PRECISIONS[dtype]}, batch {batch}, {text}, {mode}"
            if not setting.wants(case):
                continue
            question = dict(ask="continue", samples=batch, prompt=64, tokens=tokens, likeliest=likeliest)
            rates, steps = collections.defaultdict(list), {}
            for _ in range(setting.rounds):
                for side, drafts, alone in (("plain", 0, 0), ("guessing", GUESSED, 1 if mode == "auto" else 0)):
                    answer = worker.ask(**question, drafts=drafts, alone=alone)
                    rates[side].append(batch * tokens / answer["seconds"])
                    steps[side] = answer["steps"]
            saved = f"{steps['guessing'] / steps['plain']:.2f} of the steps, {answer['right']} of {answer['guessed']} guesses right"
            goal = REPEATS_GOAL if batch == 1 and likeliest else NOTHING_LOST if mode == "auto" else None
            report.show("speculation", f"{case}, {saved}", "tokens/s", rates["guessing"], rates["plain"], **({"at_least": goal} if goal else {}))


if __name__ == "__main__":
    setting = Setting(__doc__, rounds=3)
    sizes = {"tiny": ["float32"]} if setting.smoke else {"29m": PRECISIONS, "0.5b": ["bfloat16"]}
    with tempfile.TemporaryDirectory() as folder:
        for size, dtypes in sizes.items():
            model = shapes.write_model(pathlib.Path(folder) / size, size)
            for dtype in dtypes:
                run(setting, size, dtype, model)
