#!/usr/bin/env python3
"""How much longer does a run take that is saved every ten iterations?

usage: bench/checkpoint_stall.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

pipelines/ppo.toml with [checkpoint] every_iterations = 10 against 0, in turn: the time from the report of an iteration to that of
the next, over all iterations but the first. What the writing of a checkpoint takes from the cores is in it, and so is the copy in
memory."""

import json
import pathlib
import subprocess
import sys
import tempfile

from harness import report
from harness.workers import Setting

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 1.03


def mean_milliseconds(setting, folder, every, iterations):
    run_folder = pathlib.Path(folder) / f"every-{every}"
    command = [setting.program("cli/rlhf-run"), ROOT / "pipelines" / "ppo.toml", "--run-dir", run_folder]
    for value in (f"pipeline.iterations={iterations}", f"checkpoint.every_iterations={every}"):
        command += ["--set", value]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: ppo.toml ended with {done.returncode}\n{done.stderr}")
    rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    return sum(row["time/iteration_seconds"] for row in rows[1:]) / (len(rows) - 1) * 1e3


def main():
    setting = Setting(__doc__, rounds=7)
    iterations = 12 if setting.smoke else 60
    if not setting.wants(case := "ppo.toml, saved every 10 iterations"):
        return
    saved, unsaved = [], []
    for _ in range(setting.rounds):
        with tempfile.TemporaryDirectory() as folder:
            saved.append(mean_milliseconds(setting, folder, 10, iterations))
            unsaved.append(mean_milliseconds(setting, folder, 0, iterations))
    report.show("checkpoint_stall", case, "ms an iteration", saved, unsaved, at_most=MOST)


if __name__ == "__main__":
    main()
