#!/usr/bin/env python3
"""How near is the simulation of several ranks to a run on them?

usage: bench/simulated_ranks.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO on two and on four ranks of this machine, then `simulate --ranks` with the costs that the run has measured and the network as
it is by default. Seconds are of an iteration without the first."""

import json
import pathlib
import statistics
import subprocess
import tempfile

from harness import report, runs
from harness.workers import Setting, cores

SLOTS = "\n[cluster]\nslots = 4\n"


def simulated(program, folder, run_folder, ranks):
    """Seconds of each iteration."""
    words = [program, "simulate", folder / "bench.toml", "--ranks", str(ranks), "--costs", run_folder, "--format", "json",
             "--set", f"runtime.cores={max(1, cores() // ranks)}"]
    return json.loads(subprocess.run(words, check=True, capture_output=True,
                                     text=True).stdout)["variants"][0]["iteration_seconds"]


def main():
    setting = Setting(__doc__, rounds=3)
    size, prompts, samples, new, iterations = (("tiny", 4, 2, 8, 2) if setting.smoke else ("4m", 16, 8, 64, 5)
                                               if setting.quick else ("29m", 16, 8, 64, 4))
    program = setting.program("cli/rlhf-run")
    for ranks in (ranks for ranks in (2, 4) if setting.wants(f"{ranks} ranks")):
        ours, measured = [], []
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            pipeline = runs.Pipeline(folder, size, runs.GRPO, "float32", prompts, samples, new, tables=SLOTS)
            for number in range(setting.rounds):
                rows, _ = pipeline.run(program, iterations + 1, ranks)
                measured.append(statistics.fmean(row["time/iteration_seconds"] for row in rows[1:]))
                ours.append(statistics.fmean(simulated(program, folder, folder / f"run-{number}", ranks)[1:]))
        report.show("simulated_ranks", f"{size} {prompts}x{samples}x{new}, {ranks} ranks", "s an iteration", ours, measured,
                    at_least=0.9, at_most=1.1)


if __name__ == "__main__":
    main()
