#!/usr/bin/env python3
"""What does it cost, and save, that the ranks of a host have the weights of all models in common?

usage: bench/sharded.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

GRPO on four ranks and on two, with [cluster] shard = "parameters" and "optimizer" in turn: the seconds of an iteration without
the first, and of these the training. What rank 0 holds of the models, class by class, is compared with the plan, and all of it
with the other way's."""

import pathlib
import statistics
import tempfile

from harness import report, runs
from harness.workers import PRECISIONS, Setting, cores

MOST_SLOWER = 1.10
MOST_OFF_PLAN = 0.03
OF_MODELS = ("weights", "gradients", "optimizer", "checkpoint copy")
WAYS = ("optimizer", "parameters")


def tables(slots, way):
    return f'\n[cluster]\nslots = {slots}\nshard = "{way}"\n'


class Way:
    """Runs of a pipeline with one value of `shard`."""

    def __init__(self, folder, way, size, dtype, ranks, prompts, samples, new):
        self.pipeline = runs.Pipeline(pathlib.Path(folder) / way, size, runs.GRPO, dtype, prompts, samples, new,
                                      tables=tables(ranks, way))
        self.ranks = ranks
        self.seconds = {"iteration": [], "train": []}

    def run(self, setting, iterations):
        rows, _ = self.pipeline.run(setting.program("cli/rlhf-run"), iterations + 1, self.ranks)
        for name, all_seconds in self.seconds.items():
            all_seconds.append(statistics.fmean(row[f"time/{name}_seconds"] for row in rows[1:]))

    def bytes_of(self, names=OF_MODELS):
        return {of["name"]: (of["peak_bytes"], of["planned_bytes"])
                for of in self.pipeline.memory["classes"] if of["name"] in names}


def compare(setting, size, dtype, ranks, work, iterations):
    case = f"{size} {PRECISIONS[dtype]}, {ranks} ranks"
    with tempfile.TemporaryDirectory() as folder:
        whole, shared = (Way(folder, way, size, dtype, ranks, *work) for way in WAYS)
        for _ in range(setting.rounds):
            whole.run(setting, iterations)
            shared.run(setting, iterations)
    for name in ("iteration", "train"):
        report.show("sharded", f"{case}, {name} with parameters against optimizer", "s", shared.seconds[name],
                    whole.seconds[name], at_most=MOST_SLOWER)
    for name, (peak, planned) in shared.bytes_of().items():
        if planned > 0:
            report.show("sharded", f"{case}, {name} of a rank against its plan", "MB", [peak / 1e6], [planned / 1e6],
                        at_most=1 + MOST_OFF_PLAN)
    ours, theirs = (sum(peak for peak, _ in way.bytes_of().values()) for way in (shared, whole))
    report.show("sharded", f"{case}, models of a rank with parameters against optimizer", "MB", [ours / 1e6], [theirs / 1e6])


def main():
    setting = Setting(__doc__, rounds=3)
    size, work, iterations = ("tiny", (4, 2, 8), 1) if setting.smoke else ("124m", (8, 4, 32), 1 if setting.quick else 2)
    for ranks in (2, 4):
        for dtype in (dtype for dtype in PRECISIONS if setting.wants(f"{size} {PRECISIONS[dtype]}, {ranks} ranks")):
            compare(setting, size, dtype, ranks, work, iterations)


if __name__ == "__main__":
    if cores() < 2:
        report.missing("sharded", "parameters against optimizer", "needs two cores")
    else:
        main()
