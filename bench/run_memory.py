#!/usr/bin/env python3
"""Does the memory of a run follow the token budget, or the number of samples?

usage: bench/run_memory.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

The most memory that the process of a GRPO run had at a time, with 64 samples a prompt against 8: as many prompts, the same tokens
in flight and in a micro-batch, the same samples side by side. All of a run counts: program, LibTorch, weights, optimizer, KV,
activations."""

import pathlib
import tempfile

from harness import report, runs
from harness.workers import Setting

MOST_MORE = 1.05


def peak_megabytes(setting, folder, size, samples, sizes):
    pipeline = runs.Pipeline(folder, size, runs.GRPO, "float32", sizes["prompts"], samples, sizes["new"],
                             tokens_in_flight=sizes["in_flight"], micro_batch_tokens=sizes["micro_batch"],
                             running=sizes["running"])
    _, most = pipeline.run(setting.program("cli/rlhf-run"), iterations=2)
    return most / 1e6


def main():
    setting = Setting(__doc__, rounds=3)
    few, many, size = (2, 4, "tiny") if setting.smoke else (8, 64, "4m")
    sizes = dict(prompts=2, new=8, in_flight=128, micro_batch=64, running=8) if setting.smoke else \
        dict(prompts=16, new=64, in_flight=9216, micro_batch=4608, running=128)
    if setting.wants(case := f"{size} fp32, {many} samples a prompt against {few}"):
        megabytes = {few: [], many: []}
        for _ in range(setting.rounds):
            for samples in (many, few):
                with tempfile.TemporaryDirectory() as folder:
                    megabytes[samples].append(peak_megabytes(setting, pathlib.Path(folder), size, samples, sizes))
        report.show("run_memory", case, "MB", megabytes[many], megabytes[few], at_most=MOST_MORE)


if __name__ == "__main__":
    main()
