#!/usr/bin/env python3
"""Writes demonstrations.jsonl beside this script: the conversations that tools_sft.toml imitates. Deterministic.

They are of somebody who has every other sum added by the tool, and guesses the others: up to 50 off, and hardly ever right. So a
policy that imitates them well scores about a half, and can learn from its score alone that calling pays.
"""
import json
import pathlib
import random

SUMS = 1000
MOST_OFF = 50


def main():
    draw = random.Random(13)
    rows = []
    for i in range(SUMS):
        a, b = draw.randint(100, 999), draw.randint(100, 999)
        messages = [{"role": "user", "content": f"{a}+{b}="}]
        if i % 2 == 0:
            call = {"type": "function", "function": {"name": "add", "arguments": {"a": a, "b": b}}}
            messages += [{"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": str(a + b)}]
        messages.append({"role": "assistant", "content": str(a + b if i % 2 == 0 else a + b + draw.randint(-MOST_OFF, MOST_OFF))})
        rows.append(json.dumps({"messages": messages}) + "\n")
    pathlib.Path(__file__).with_name("demonstrations.jsonl").write_text("".join(rows))


if __name__ == "__main__":
    main()
