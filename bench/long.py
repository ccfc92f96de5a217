#!/usr/bin/env python3
"""What does it take to train on one long sample, on one rank and on ranks that compute each pass together?

usage: bench/long.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

Training on one text of so many tokens an iteration, on one rank with all cores and on 2 and 4 ranks with [cluster]
sequence_parallel, whose attention divides heads or goes around a ring, in turn: the seconds of training and the activations of
the rank that leads. Ranks share the cores of the machine, so with as many ranks as cores time would stay as it is if nothing had
to go between them."""

import json
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

from harness import report, shapes
from harness.workers import Setting, cores

MOST_SLOWER = 1.1
MOST_BESIDE = 0.05  # of the activations of one rank, beside the share of a rank

PIPELINE = """[pipeline]
name = "long"
iterations = {iterations}

[budget]
tokens_in_flight = {tokens}
micro_batch_tokens = {tokens}
pass_tokens = {tokens}

[checkpoint]
copy = "none"

[cluster]
slots = 1
sequence_parallel = {ranks}
ring = {ring}

[models.policy]
checkpoint = "model"
init = "random"
activation_checkpointing = "none"
optimizer = {{ learning_rate = 1e-5 }}

[nodes.examples]
type = "jsonl_examples"
path = "long.jsonl"
model = "policy"
groups_per_iteration = 1
max_tokens = {tokens}

[nodes.train]
type = "train_sft"
inputs = ["examples"]
model = "policy"
"""


class Ranks:
    """Runs of the pipeline on so many ranks, in a ring of so many blocks."""

    def __init__(self, folder, size, tokens, ranks, ring=1):
        self.folder, self.ranks, self.ring = pathlib.Path(folder) / f"{ranks}-{ring}", ranks, ring
        self.folder.mkdir()
        shapes.write_model(self.folder / "model", size, positions=tokens)
        (self.folder / "long.jsonl").write_text(json.dumps({"prompt": "1", "completion": "2" * (tokens - 4)}) + "\n")
        self.text = PIPELINE.format(iterations=3, tokens=tokens, ranks=ranks, ring=ring)
        self.seconds, self.activations = [], 0

    def run(self, program):
        (self.folder / "long.toml").write_text(self.text)
        run_folder = self.folder / "run"
        words = ["launch", "--ranks", str(self.ranks)] if self.ranks > 1 else ["run"]
        done = subprocess.run([program, *words, self.folder / "long.toml", "--run-dir", run_folder], capture_output=True,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"error: {program} on {self.ranks} ranks ended with {done.returncode}\n{done.stderr}")
        rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        self.seconds.append(statistics.fmean(row["time/train_seconds"] for row in rows[1:]))
        classes = json.loads((run_folder / "memory.json").read_text())["classes"]
        self.activations = next(of["peak_bytes"] for of in classes if of["name"] == "activations")
        shutil.rmtree(run_folder)


def compare(setting, size, tokens, numbers):
    with tempfile.TemporaryDirectory() as folder:
        alone, *shared = [Ranks(folder, size, tokens, *ranks) for ranks in ((1, 1), *numbers)]
        for _ in range(setting.rounds):
            for ranks in (alone, *shared):
                ranks.run(setting.program("cli/rlhf-run"))
    for ranks in shared:
        case = (f"{size} {tokens // 1024}k tokens, sequence_parallel {ranks.ranks}" +
                (f" in a ring of {ranks.ring}" if ranks.ring > 1 else ""))
        goal = {"at_most": MOST_SLOWER} if ranks.ranks <= cores() else {}
        report.show("long", f"{case}, training against one rank", "s", ranks.seconds, alone.seconds, **goal)
        report.show("long", f"{case}, activations of a rank against one rank", "MB", [ranks.activations / 1e6],
                    [alone.activations / 1e6], at_most=1 / ranks.ranks + MOST_BESIDE)


def main():
    setting = Setting(__doc__, rounds=3)
    if setting.smoke:
        return compare(setting, "tiny", 1024, [(2, 1), (2, 2)])
    for tokens in (8192, 16384) if setting.quick else (8192, 16384, 32768, 65536):
        if setting.wants(f"4m {tokens // 1024}k"):
            compare(setting, "4m", tokens, [(2, 1), (2, 2), (4, 1), (4, 2), (4, 4)])


if __name__ == "__main__":
    if cores() < 2:
        report.missing("long", "ranks that compute passes together", "needs two cores")
    else:
        main()
