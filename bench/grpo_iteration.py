#!/usr/bin/env python3
"""How fast is an iteration of GRPO, against the limit of the machine and against TRL's GRPOTrainer?

usage: bench/grpo_iteration.py [--smoke | --quick] [--build FOLDER] [--peers FOLDER] [--rounds N] [--only TEXT]

Generation, a rule that scores, group-relative advantages, one pass of training, sync: 2N FLOP for each token that is decoded and
6N for each that is trained. Cases are SIZExPROMPTSxSAMPLESxTOKENS; what is measured and how is in bench/harness/iteration.py."""

from harness import iteration, runs
from harness.workers import Setting

if __name__ == "__main__":
    setting = Setting(__doc__, rounds=3)
    bench = iteration.Bench("grpo_iteration", runs.GRPO, "grpo.py", passes=8, groups=True)
    iteration.run(bench, iteration.shapes_for(setting, rounds_of_long={"4m 16x16x256": 2}), setting, narrow_goals={"4m": 6})
