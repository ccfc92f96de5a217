#!/usr/bin/env python3
"""Do long answers train in passes, in the memory that the plan says?

usage: bench/long_answers.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO on 4 prompts x 4 samples, none of which ends early: a group is many passes long. Activations must follow `pass_tokens`: a
pass of one sample against one of two. The most memory that the process had, and its activations, are compared with the plan."""

import pathlib
import tempfile

from harness import report, runs, shapes
from harness.workers import Setting

MOST_OFF_PLAN = 0.05


def memory_of(setting, size, samples, new, samples_a_pass):
    length = shapes.PROMPT_TOKENS + new
    with tempfile.TemporaryDirectory() as folder:
        pipeline = runs.Pipeline(pathlib.Path(folder), size, runs.GRPO, "bfloat16", samples, samples, new,
                                 pass_tokens=samples_a_pass * length, micro_batch_tokens=samples * length)
        rows, _ = pipeline.run(setting.program("cli/rlhf-run"), iterations=1)
        return pipeline.memory, rows[-1]


def class_of(memory, name):
    found = next(of for of in memory["classes"] if of["name"] == name)
    return found["peak_bytes"] / 1e6, found["planned_bytes"] / 1e6


def measure(setting, size, samples, new):
    case, activations = f"{size} bf16 {samples}x{samples}x{new}", {}
    for samples_a_pass in (1, 2):
        memory, row = memory_of(setting, size, samples, new, samples_a_pass)
        activations[samples_a_pass], planned = class_of(memory, "activations")
        where = f"{case}, pass of {samples_a_pass}"
        report.show("long_answers", f"{where}, activations of plan", "MB", [activations[samples_a_pass]], [planned],
                    at_most=1 + MOST_OFF_PLAN)
        report.show("long_answers", f"{where}, resident of plan", "MB", [memory["peak_bytes"] / 1e6],
                    [memory["planned_bytes"] / 1e6], at_most=1 + MOST_OFF_PLAN)
        report.show("long_answers", f"{where}, seconds of training against generation", "s", [row["time/train_seconds"]],
                    [row["time/rollout_seconds"]])
    report.show("long_answers", f"{case}, activations of a pass of 2 against 1", "MB", [activations[2]], [activations[1]],
                at_most=2)


def main():
    setting = Setting(__doc__, rounds=1)
    sizes = [("tiny", 2, 32)] if setting.smoke else [("29m", 4, 2048)] if setting.quick else [("29m", 4, 2048), ("124m", 4, 8192)]
    for size, samples, new in sizes:
        if not setting.wants(f"{size} bf16"):
            continue
        if size == "124m" and not setting.only:
            report.missing("long_answers", f"{size} bf16 {samples}x{samples}x{new}",
                           "takes an hour: bench/long_answers.py --only 124m")
            continue
        measure(setting, size, samples, new)


if __name__ == "__main__":
    main()
