#!/usr/bin/env python3
"""Writes the task of calculator.toml beside this script. Deterministic: running it again gives the same bytes.

  calculator_train.jsonl           {"prompt": "345+678=", "label": "1023"}, sums of two numbers from 100 to 999
  calculator_demonstrations.jsonl  {"prompt": "345+678=", "completion": ...}: what calculator_sft.toml imitates

The demonstrations are of somebody who calls the calculator for every other sum, "(345+678)1023", of which "1023" is the
calculator's reply, and guesses the others, "1041": up to 50 off, and hardly ever right. So a policy that imitates them well
scores about a half, and can learn from its score alone that calling pays.
"""
import json
import pathlib
import random

SUMS = 2000
MOST_OFF = 50


def write(name, rows):
    path = pathlib.Path(__file__).parent / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def main():
    draw = random.Random(11)
    sums = [(draw.randint(100, 999), draw.randint(100, 999)) for _ in range(SUMS)]
    prompts = [f"{a}+{b}=" for a, b in sums]
    write("calculator_train.jsonl", [{"prompt": prompt, "label": str(a + b)} for prompt, (a, b) in zip(prompts, sums)])

    rows = []
    for i, (prompt, (a, b)) in enumerate(zip(prompts, sums)):
        guess = str(a + b + draw.randint(-MOST_OFF, MOST_OFF))
        rows.append({"prompt": prompt, "completion": f"({a}+{b}){a + b}" if i % 2 == 0 else guess})
    write("calculator_demonstrations.jsonl", rows)


if __name__ == "__main__":
    main()
