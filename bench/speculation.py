#!/usr/bin/env python3
"""Does it pay to guess the next tokens of a sample and compute them beside the one that is due? Against the same engine that does
not guess.

usage: bench/speculation.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

Both sample the same tokens, to the bit, in turn. Of a model with random weights the likeliest text soon repeats itself: how often
a guess is right is told as the steps that are saved, since it is the text's and not ours. Text that is drawn at random repeats
nothing: there nothing may be lost. "auto" guesses while one sample runs alone, "ngrams" whatever runs beside. Cases are SIZE
PRECISION, batch B, text, mode.

Last, another model guesses: the first two layers of the one that is sampled from, whose later layers are made to add little,
since with random weights two models agree on nothing. How often the draft is right is therefore chosen here (LATER) and told;
what a guess costs, and what it saves, is measured. A draft is worth what these figures say only where it is right as often."""

import collections
import pathlib
import tempfile

from harness import report, shapes
from harness.workers import PRECISIONS, Setting, Worker, cores

REPEATS_GOAL, NOTHING_LOST = 1.3, 0.97
GUESSED = 8
DRAFT_LAYERS, STRETCH = 2, 16
LATER = {"often": 0.01, "sometimes": 0.03}  # what the later layers add is multiplied with, for a draft that is right so often


def run(setting, size, dtype, folder):
    tokens = 16 if setting.smoke else 96 if setting.quick else 192
    with Worker([setting.program("bench/programs/generation"), folder, dtype, cores()]) as worker:
        worker.ask(ask="continue", samples=1, prompt=16, tokens=4, likeliest=True, drafts=0, alone=0)
        for batch, likeliest, mode in ((1, True, "auto"), (1, False, "auto"), (4, True, "auto"), (16, True, "auto"),
                                       (16, True, "ngrams")):
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
            saved = (f"{steps['guessing'] / steps['plain']:.2f} of the steps, {answer['right']} of "
                     f"{answer['guessed']} guesses right")
            goal = REPEATS_GOAL if batch == 1 and likeliest else NOTHING_LOST if mode == "auto" else None
            report.show("speculation", f"{case}, {saved}", "tokens/s", rates["guessing"], rates["plain"],
                        **({"at_least": goal} if goal else {}))


def run_with_draft(setting, size, dtype, folder):
    tokens = 16 if setting.smoke else 96 if setting.quick else 192
    with Worker([setting.program("bench/programs/generation"), folder, dtype, cores()]) as worker:
        for batch, right in ((1, "often"), (1, "sometimes"), (4, "often"), (16, "often")):
            case = f"{size} {PRECISIONS[dtype]}, batch {batch}, a draft of {DRAFT_LAYERS} layers, {right} right"
            if not setting.wants(case):
                continue
            draft = dict(layers=DRAFT_LAYERS, later=LATER[right], stretch=STRETCH)
            question = dict(ask="continue", samples=batch, prompt=64, tokens=tokens, likeliest=False, alone=0, draft=draft)
            worker.ask(**question | dict(tokens=4), drafts=0)
            rates, answers = collections.defaultdict(list), {}
            for _ in range(setting.rounds):
                for side, drafts in (("plain", 0), ("guessing", GUESSED)):
                    answers[side] = worker.ask(**question, drafts=drafts)
                    rates[side].append(batch * tokens / answers[side]["seconds"])
            guessing = answers["guessing"]
            saved = (f"{guessing['steps'] / answers['plain']['steps']:.2f} of the steps, {guessing['right']} of "
                     f"{guessing['guessed']} guesses right")
            report.show("speculation", f"{case}, {saved}", "tokens/s", rates["guessing"], rates["plain"])


if __name__ == "__main__":
    setting = Setting(__doc__, rounds=3)
    sizes = {"tiny": ["float32"]} if setting.smoke else {"29m": PRECISIONS, "0.5b": ["bfloat16"]}
    with tempfile.TemporaryDirectory() as folder:
        for size, dtypes in sizes.items():
            model = shapes.write_model(pathlib.Path(folder) / size, size)
            for dtype in dtypes:
                run(setting, size, dtype, model)
                if size != "0.5b":
                    run_with_draft(setting, size, dtype, model)
