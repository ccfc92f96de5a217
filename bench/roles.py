#!/usr/bin/env python3
"""What do ranks with roles give on this machine, and how near is their simulation?

usage: bench/roles.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO on two ranks that train and two that sample, against four ranks that do both, in turn, with a lag of 0 and of 1: sampled
tokens a second. Then `simulate` with the costs that each run with roles has measured and the network as it is by default, against
the seconds of that run. Rates and seconds are of an iteration without the first. All processes share the cores of this machine,
so neither side has more of them than the other.

With a lag of 1 also how long sampling stands still for weights that are on their way, on the rank that does so longest, against a
step of generation of the same run, where sampling waits for training."""

import json
import pathlib
import statistics
import subprocess
import tempfile

from harness import report, runs
from harness.workers import Setting, cores

RANKS = 4
SAMPLING = 2
SLOTS = "\n[cluster]\nslots = 4\n"
ROLES = SLOTS + f"\n[cluster.roles.train]\nranks = {RANKS - SAMPLING}\n\n[cluster.roles.rollout]\nranks = {SAMPLING}\n"


def simulated(program, folder, run_folder):
    """Seconds of each iteration."""
    words = [program, "simulate", folder / "bench.toml", "--costs", run_folder, "--format", "json", "--set",
             f"runtime.cores={max(1, cores() // RANKS)}"]
    return json.loads(subprocess.run(words, check=True, capture_output=True,
                                     text=True).stdout)["variants"][0]["iteration_seconds"]


def stalls_of(rows):
    """Seconds, of each version that came during the run."""
    return [row["time/weights_stall_seconds/max"] for row in rows if "time/weights_stall_seconds/max" in row]


def step_of(rows, running):
    """Median seconds of a step of generation that gives a token to so many samples."""
    return statistics.median(row["time/rollout_seconds"] * SAMPLING / row["rollout/sampled_tokens"] * running for row in rows[1:])


def seconds_of(rows):
    return statistics.fmean(row["time/iteration_seconds"] for row in rows[1:])


def stall(setting, program, case, shape, running):
    """The median over versions, and the most, against a step."""
    size, prompts, samples, new, iterations = shape
    case = f"lag 1, {case}"
    if not setting.wants(case):
        return
    stalls, most, steps = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        split = runs.Pipeline(folder, size, runs.GRPO, "float32", prompts, samples, new, lag=1, rollout_on="rollout",
                              rest_on="train", tables=ROLES, running=running)
        for _ in range(setting.rounds):
            rows = split.run(program, iterations + 2, RANKS)[0]
            stalls.append(statistics.median(stalls_of(rows)))
            most.append(max(stalls_of(rows)))
            steps.append(step_of(rows, running))
    case += f", {size} {prompts}x{samples}x{new}, {running} samples of a rank at a time"
    report.show("roles", f"{case}: stall for weights, against a step", "s", stalls, steps, at_most=1)
    report.show("roles", f"{case}: the longest stall, against a step", "s", most, steps)


def main():
    setting = Setting(__doc__, rounds=3)
    size, prompts, samples, new, iterations = (("tiny", 4, 2, 8, 2) if setting.smoke else ("4m", 16, 8, 64, 5)
                                               if setting.quick else ("29m", 16, 8, 64, 4))
    program = setting.program("cli/rlhf-run")
    shape = size, prompts, samples, new, iterations
    stall(setting, program, "sampling waits for training", shape, prompts * samples // SAMPLING)
    for lag in (lag for lag in (0, 1) if setting.wants(f"lag {lag}")):
        apart, together, of_simulations = [], [], []
        with tempfile.TemporaryDirectory() as name:
            folders = [pathlib.Path(name) / part for part in ("apart", "together")]
            for folder in folders:
                folder.mkdir()
            split = runs.Pipeline(folders[0], size, runs.GRPO, "float32", prompts, samples, new, lag=lag, rollout_on="rollout",
                                  rest_on="train", tables=ROLES)
            whole = runs.Pipeline(folders[1], size, runs.GRPO, "float32", prompts, samples, new, lag=lag, tables=SLOTS)
            for number in range(setting.rounds):
                apart.append(seconds_of(split.run(program, iterations + 1, RANKS)[0]))
                of_simulations.append(statistics.fmean(simulated(program, folders[0], folders[0] / f"run-{number}")[1:]))
                together.append(seconds_of(whole.run(program, iterations + 1, RANKS)[0]))
        case = f"lag {lag}, {size} {prompts}x{samples}x{new}, 2 ranks train and 2 sample"
        report.show("roles", f"{case}, against 4 that do both", "sampled tokens/s",
                    *([split.sampled_tokens / s for s in side] for side in (apart, together)))
        report.show("roles", f"{case}, simulated against measured", "s an iteration", of_simulations, apart, at_least=0.9,
                    at_most=1.1)


if __name__ == "__main__":
    main()
