#!/usr/bin/env python3
"""How much of what generating beside training could gain is gained?

usage: bench/overlap.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO on two executors of one core each, an iteration in one micro-batch: with policy_lag = 0 they alternate, with policy_lag = 1
both work at a time. The gain is the time of an iteration at lag 0 divided by that at lag 1. It cannot be more than the time at
lag 0 divided by the longer of the two parts, as the executors of the alternating run were busy: that is the reference."""

import pathlib
import statistics
import tempfile

from harness import report, runs
from harness.workers import PRECISIONS, Setting, cores

GOAL = 0.97
EXECUTORS = ("cpu", "cpu:1")


def times(setting, pipeline, iterations):
    """Mean seconds of an iteration, and of each executor's work in it; the first two iterations fill the pipeline."""
    rows, _ = pipeline.run(setting.program("cli/rlhf-run"), iterations + 2)
    mean = {key: statistics.fmean(row[key] for row in rows[2:]) for key in
            ("time/iteration_seconds", *(f"time/executor/{name}/busy_seconds" for name in EXECUTORS))}
    return mean["time/iteration_seconds"], [mean[f"time/executor/{name}/busy_seconds"] for name in EXECUTORS]


def main():
    setting = Setting(__doc__, rounds=3)
    size, prompts, samples, new, iterations = (("tiny", 2, 2, 8, 2)
                                               if setting.smoke else ("4m", 8, 8, 64, 4 if setting.quick else 8))
    iteration_tokens = prompts * samples * (runs.shapes.PROMPT_TOKENS + new)
    for dtype in (dtype for dtype in PRECISIONS if setting.wants(f"{size} {PRECISIONS[dtype]}")):
        gains, limits = [], []
        for _ in range(setting.rounds):
            with tempfile.TemporaryDirectory() as folder:
                alternating, beside = (runs.Pipeline(pathlib.Path(folder) / str(lag), size, runs.GRPO, dtype, prompts, samples,
                                                     new, lag=lag, rollout_on="cpu:1", micro_batch_tokens=iteration_tokens)
                                       for lag in (0, 1))
                seconds, parts = times(setting, alternating, iterations)
                gains.append(seconds / times(setting, beside, iterations)[0])
                limits.append(seconds / max(parts))
        report.show("overlap", f"{size} {PRECISIONS[dtype]}, lag 1 against lag 0", "times faster", gains, limits, at_least=GOAL)


if __name__ == "__main__":
    if cores() < 2:
        report.missing("overlap", "lag 1 against lag 0", "needs two cores")
    else:
        main()
