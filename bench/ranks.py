#!/usr/bin/env python3
"""What does a run lose when its cores are shared among ranks?

usage: bench/ranks.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO with two slots: one process with two cores, and two ranks with one core each, in turn. Both sample the same tokens and make
the same steps. The rate is of an iteration without the first: sampled tokens of all ranks by the seconds of rank 0. What rank 0
of two holds of the models, class by class, is compared with the plan."""

import pathlib
import statistics
import tempfile

from harness import report, runs
from harness.workers import PRECISIONS, Setting, cores

GOAL = 0.90
MOST_OFF_PLAN = 0.02
OF_MODELS = ("weights", "gradients", "optimizer", "checkpoint copy")
SLOTS = "\n[cluster]\nslots = 2\n"


def rate(setting, pipeline, iterations, ranks):
    """Sampled tokens a second."""
    rows, _ = pipeline.run(setting.program("cli/rlhf-run"), iterations + 1, ranks)
    return pipeline.sampled_tokens / statistics.fmean(row["time/iteration_seconds"] for row in rows[1:])


def show_memory(case, memory):
    for of in memory["classes"]:
        if of["name"] in OF_MODELS and of["planned_bytes"] > 0:
            report.show("ranks", f"{case}, {of['name']} of a rank against its plan", "MB", [of["peak_bytes"] / 1e6],
                        [of["planned_bytes"] / 1e6], at_most=1 + MOST_OFF_PLAN)


def main():
    setting = Setting(__doc__, rounds=3)
    size, prompts, samples, new, iterations = (("tiny", 2, 2, 8, 1)
                                               if setting.smoke else ("29m", 8, 8, 64, 1 if setting.quick else 2))
    for dtype in (dtype for dtype in PRECISIONS if setting.wants(f"{size} {PRECISIONS[dtype]}")):
        alone, shared = [], []
        with tempfile.TemporaryDirectory() as folder:
            pipeline = runs.Pipeline(pathlib.Path(folder), size, runs.GRPO, dtype, prompts, samples, new, tables=SLOTS)
            for _ in range(setting.rounds):
                alone.append(rate(setting, pipeline, iterations, ranks=1))
                shared.append(rate(setting, pipeline, iterations, ranks=2))
            case = f"{size} {PRECISIONS[dtype]} {prompts}x{samples}x{new}, 2 ranks"
            report.show("ranks", f"{case} of 1 core against 1 of 2", "sampled tokens/s", shared, alone, at_least=GOAL)
            show_memory(case, pipeline.memory)


if __name__ == "__main__":
    if cores() < 2:
        report.missing("ranks", "2 ranks against 1", "needs two cores")
    else:
        main()
