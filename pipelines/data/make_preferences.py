#!/usr/bin/env python3
"""Writes preferences between answers to the sums of make_arithmetic.py beside this script. Deterministic.

  arithmetic_preferences.jsonl          {"prompt": "37+45=", "chosen": "82", "rejected": "92"}, a pair for each sum that is
                                        practised
  arithmetic_preferences_heldout.jsonl  likewise, for the sums that appear nowhere else
  arithmetic_labels.jsonl               {"prompt": "37+45=", "completion": "82", "label": true}, an answer for each sum that is
                                        practised

The chosen answer is right; the rejected one is a mistake of the careless clerk, 10 too high twice as often as 20 too high.
Of the answers with a label every other one is right.
"""
import json
import pathlib

FOLDER = pathlib.Path(__file__).parent
MISTAKES = (10, 10, 20)


def pairs(name):
    for number, line in enumerate((FOLDER / name).read_text().splitlines()):
        row = json.loads(line)
        wrong = int(row["label"]) + MISTAKES[number % len(MISTAKES)]
        yield {"prompt": row["prompt"], "chosen": row["label"], "rejected": str(wrong)}


def labels(name):
    for number, pair in enumerate(pairs(name)):
        right = number % 2 == 0
        yield {"prompt": pair["prompt"], "completion": pair["chosen" if right else "rejected"], "label": right}


def written(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def main():
    for source, target in (("arithmetic_train.jsonl", "arithmetic_preferences.jsonl"),
                           ("arithmetic_heldout.jsonl", "arithmetic_preferences_heldout.jsonl")):
        (FOLDER / target).write_text(written(pairs(source)))
    (FOLDER / "arithmetic_labels.jsonl").write_text(written(labels("arithmetic_train.jsonl")))


if __name__ == "__main__":
    main()
