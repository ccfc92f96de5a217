#!/usr/bin/env python3
"""How fast is an iteration of PPO with actor, critic, reference and reward model, against the limit of the machine and TRL's
PPOTrainer?

usage: bench/ppo_iteration.py [--smoke | --quick] [--build FOLDER] [--peers FOLDER] [--rounds N] [--only TEXT]

Four models of one size: 2N FLOP a token to decode, 2N each for reference, values and reward, 6N each to train actor and critic.
Every prompt has one sample, as TRL's trainer has it. Cases are SIZExPROMPTSxSAMPLESxTOKENS; what is measured and how is in
bench/harness/iteration.py."""

import dataclasses

from harness import iteration, runs
from harness.workers import Setting


def one_sample_each(shape):
    return dataclasses.replace(shape, prompts=shape.prompts * shape.samples, samples=1)


if __name__ == "__main__":
    setting = Setting(__doc__, rounds=3)
    bench = iteration.Bench("ppo_iteration", runs.PPO, "ppo.py", passes=20, groups=False)
    iteration.run(bench, [one_sample_each(shape) for shape in iteration.shapes_for(setting, rounds_of_long={})], setting,
                  narrow_goals={})
