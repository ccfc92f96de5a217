#!/usr/bin/env python3
"""What do all cores give beside a foreign process that burns one of them, against one core alone?

usage: bench/neighbours.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

Generation (16 samples), log-probabilities and training steps (1024 tokens in samples of 128) with as many threads as there are cores, beside
a process that never sleeps, and without it; in turn with one thread on the quiet machine. A program that waits for a thread that lost its
core gives less than one thread would."""

import collections
import contextlib
import multiprocessing
import os
import pathlib
import signal
import tempfile

import report
import shapes
from workers import PRECISIONS, Setting, Worker, cores

GOAL = 0.9
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


def main():
    setting = Setting(__doc__, rounds=7)
    sizes = ["tiny"] if setting.smoke else ["4m"] if setting.quick else ["4m", "29m"]
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            model = shapes.write_model(pathlib.Path(folder) / "model", size)
            for dtype in PRECISIONS:
                for kind in KINDS:
                    case = f"{size} {PRECISIONS[dtype]} {kind}"
                    if not setting.wants(case):
                        continue
                    rates = measure(setting, kind, model, dtype)
                    report.show("neighbours", f"{case}, beside a neighbour", "tokens/s", rates["beside"], rates["one"], at_least=GOAL)
                    report.show("neighbours", f"{case}, alone", "tokens/s", rates["all"], rates["one"])


if __name__ == "__main__":
    main()
