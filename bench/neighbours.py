#!/usr/bin/env python3
"""What do all cores give beside a foreign process that burns one of them, against one core alone?

usage: bench/neighbours.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

Generation (16 samples), log-probabilities and training steps (1024 tokens in samples of 128) with as many threads as there are
cores, beside a process that never sleeps, and without it; in turn with one thread on the quiet machine. A program that waits for
a thread that lost its core gives less than one thread would. And two GRPO runs side by side, of which each takes all cores: what
both sample a second against what one alone does."""

import collections
import concurrent.futures
import contextlib
import multiprocessing
import os
import pathlib
import signal
import statistics
import tempfile

from harness import report, runs, shapes
from harness.workers import PRECISIONS, Setting, Worker, cores

GOAL = 0.9
ITERATIONS = 4   # of a run, those that count
MOST_ROUNDS = 3  # of two runs
KINDS = {  # name: program, question, tokens of an answer
    "generate": ("generation", {"ask": "decode", "batch": 16, "context": 64, "steps": 24}, 16 * 24),
    "logprobs": ("training", {"tokens": 1024, "length": 128, "backward": False}, 1024),
    "train": ("training", {"tokens": 1024, "length": 128}, 1024),
}


def burn():
    while True:
        pass


class Neighbour:
    """A process that burns a core while it is let, and is stopped otherwise."""

    def __enter__(self):
        self.process = multiprocessing.Process(target=burn, daemon=True)
        self.process.start()
        self.rest()
        return self

    def rest(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    @contextlib.contextmanager
    def burning(self):
        os.kill(self.process.pid, signal.SIGCONT)
        try:
            yield
        finally:
            self.rest()

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()


def measure(setting, kind, model, dtype):
    program, question, tokens = KINDS[kind]
    path, rates = setting.program(f"bench/programs/{program}"), collections.defaultdict(list)
    with Worker([path, model, dtype, 1]) as one, Worker([path, model, dtype, cores()]) as all_threads, Neighbour() as neighbour:
        def rate(worker):
            return tokens / worker.ask(**question)["seconds"]

        for worker in (one, all_threads):
            worker.ask(**question)
        for _ in range(setting.rounds):
            rates["one"].append(rate(one))
            rates["all"].append(rate(all_threads))
            with neighbour.burning():
                rates["beside"].append(rate(all_threads))
    return rates


def beside_a_neighbour(setting, size, dtypes):
    with tempfile.TemporaryDirectory() as folder:
        model = shapes.write_model(pathlib.Path(folder) / "model", size)
        for dtype in dtypes:
            for kind in KINDS:
                case = f"{size} {PRECISIONS[dtype]} {kind}"
                if not setting.wants(case):
                    continue
                rates = measure(setting, kind, model, dtype)
                report.show("neighbours", f"{case}, beside a neighbour", "tokens/s", rates["beside"], rates["one"], at_least=GOAL)
                report.show("neighbours", f"{case}, alone", "tokens/s", rates["all"], rates["one"])


def rate_of_run(setting, pipeline):
    """Sampled tokens a second. The first iteration warms up, and in the last one the other run may have ended."""
    rows, _ = pipeline.run(setting.program("cli/rlhf-run"), ITERATIONS + 2)
    return pipeline.sampled_tokens / statistics.median(row["time/iteration_seconds"] for row in rows[1:-1])


def side_by_side(setting, size, dtype, prompts, samples, new):
    if not setting.wants(case := f"{size} {PRECISIONS[dtype]} two runs"):
        return
    alone, both = [], []
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor() as pool:
        pipelines = [runs.Pipeline(pathlib.Path(folder) / name, size, runs.GRPO, dtype, prompts, samples, new)
                     for name in ("a", "b")]
        for _ in range(min(setting.rounds, MOST_ROUNDS)):
            alone.append(rate_of_run(setting, pipelines[0]))
            both.append(sum(pool.map(lambda pipeline: rate_of_run(setting, pipeline), pipelines)))
    report.show("neighbours", f"{case} side by side", "sampled tokens/s", both, alone, at_least=GOAL)


def main():
    setting = Setting(__doc__, rounds=7)
    if setting.smoke:
        beside_a_neighbour(setting, "tiny", PRECISIONS)
        side_by_side(setting, "tiny", "float32", 2, 2, 8)
        return
    beside_a_neighbour(setting, "4m", PRECISIONS)
    side_by_side(setting, "4m", "float32", 8, 8, 64)
    if not setting.quick:
        beside_a_neighbour(setting, "29m", PRECISIONS)
        side_by_side(setting, "29m", "bfloat16", 8, 8, 64)
        beside_a_neighbour(setting, "0.5b", ["bfloat16"])


if __name__ == "__main__":
    main()
