#!/usr/bin/env python3
"""Writes the arithmetic task of the ready pipelines beside this script. Deterministic: running it again gives the same bytes.

  arithmetic_train.jsonl           {"prompt": "37+45=", "label": "82"}, sums of two numbers from 10 to 99: what ppo.toml practises
  arithmetic_heldout.jsonl         likewise, sums that appear nowhere else: what evaluates
  arithmetic_demonstrations.jsonl  {"prompt": "37+45=", "completion": "82"}: what sft.toml imitates

The demonstrations come from a careless clerk, so that imitating them well gives a policy that knows how to add but is often
wrong, and reinforcement has something to improve: of five answers to a sum two are right, two are 10 too high and one is 20 too
high. The five stand together, so that a batch holds them in these proportions.
"""
import json
import pathlib
import random

HELD_OUT = 500
MISTAKES = (0, 10, 20, 0, 10)


def write(name, rows):
    path = pathlib.Path(__file__).parent / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    sums = [(a, b) for a in range(10, 100) for b in range(10, 100)]
    random.Random(7).shuffle(sums)
    held_out, train = sums[:HELD_OUT], sums[HELD_OUT:]

    def prompt(a, b):
        return f"{a}+{b}="

    write("arithmetic_heldout.jsonl", [{"prompt": prompt(a, b), "label": str(a + b)} for a, b in held_out])
    write("arithmetic_train.jsonl", [{"prompt": prompt(a, b), "label": str(a + b)} for a, b in train])
    write("arithmetic_demonstrations.jsonl",
          [{"prompt": prompt(a, b), "completion": str(a + b + off)} for a, b in train for off in MISTAKES])


if __name__ == "__main__":
    main()
