#!/usr/bin/env python3
"""Writes conversations.jsonl beside this script: two questions and answers about neighbouring numbers each, as messages.
Deterministic.

{"messages": [{"role": "user", "content": "after 17?"}, {"role": "assistant", "content": "18"}, ...]}
"""
import json
import pathlib
import random


def exchange(choose):
    number = choose.randrange(10, 60)
    word, answer = choose.choice((("after", number + 1), ("before", number - 1)))
    return [{"role": "user", "content": f"{word} {number}?"}, {"role": "assistant", "content": str(answer)}]


def main():
    choose = random.Random(11)
    rows = [{"messages": exchange(choose) + exchange(choose)} for _ in range(600)]
    path = pathlib.Path(__file__).parent / "conversations.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    main()
