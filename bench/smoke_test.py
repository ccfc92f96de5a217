"""Runs one bench with --smoke and checks that it prints what bench/run reads: one JSON object a line, with the agreed keys.

usage: smoke_test.py PROGRAM|SCRIPT.py [ARGUMENT...]"""

import json
import subprocess
import sys

NUMBERS = ("ours", "ours_low", "ours_high", "reference", "reference_low", "reference_high", "ratio")


def wrong_in(line):
    """What is wrong with a line of output; empty: nothing."""
    try:
        result = json.loads(line)
    except json.JSONDecodeError as error:
        return f"not JSON ({error})"
    for key in ("bench", "case", "missing" if "missing" in result else "unit"):
        if not isinstance(result.get(key), str) or not result[key]:
            return f"{key} is not a text"
    if "missing" in result:
        return ""
    for key in NUMBERS:
        if isinstance(result.get(key), bool) or not isinstance(result.get(key), (int, float)):
            return f"{key} is not a number"
    if "goal" not in result or not isinstance(result["goal"], (str, type(None))):
        return "goal is neither a text nor null"
    for name in ("ours", "reference"):
        if not result[name + "_low"] <= result[name] <= result[name + "_high"]:
            return f"{name} is not between its lowest and highest value"
    return ""


def main():
    interpreter = [sys.executable] if sys.argv[1].endswith(".py") else []
    run = subprocess.run([*interpreter, *sys.argv[1:], "--smoke"], capture_output=True, text=True, timeout=170)
    problems = [] if run.returncode == 0 else [f"exit status {run.returncode}: {run.stderr}"]
    lines = run.stdout.splitlines()
    if not lines:
        problems.append("it printed nothing")
    problems += [f"{wrong}: {line}" for line in lines if (wrong := wrong_in(line))]
    print("\n".join(problems + lines))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
