"""What runs first in a sandbox of nodes/scorers/code_tests.cpp: sets limits, then runs /sandbox/solution.py.

usage: runner.py LIMITS program    the solution as a program, with this stdin and stdout
       runner.py LIMITS tests      a line of JSON on stdin says what is asked of it:
           {"secret": ..., "tests": ["assert ...", ...]}                       -> "SECRET true" or "SECRET false" for each
           {"secret": ..., "function": "f", "arguments": [[1, 2], ...]}        -> "SECRET VALUE" for each, "SECRET" where it raised

LIMITS is {"RLIMIT_CPU": 10, ...}. The first line on stdout is "started"; with tests, "SECRET loaded" comes once the solution is.
Without the secret a solution that writes to stdout says nothing.
"""

import json
import os
import resource
import sys

SOLUTION = "/sandbox/solution.py"


def set_limits(limits):
    for name, value in limits.items():
        kind = getattr(resource, name)
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))


def solution():
    with open(SOLUTION, encoding="utf-8") as file:
        return compile(file.read(), "solution.py", "exec")


def run_program():
    sys.argv = ["solution.py"]
    exec(solution(), {"__name__": "__main__", "__file__": "solution.py", "__builtins__": __builtins__})


def passes(test, names):
    try:
        exec(test, names)
        return True
    except BaseException:  # SystemExit too
        return False


def value_of(function, arguments):
    try:
        return json.dumps(function(*arguments))
    except BaseException:
        return ""


def run_tests():
    job = json.loads(sys.stdin.readline())
    answers = os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)

    def answer(text):
        answers.write(f"{job['secret']} {text}\n")
        answers.flush()

    names = {"__name__": "solution", "__file__": "solution.py", "__builtins__": __builtins__}
    exec(solution(), names)
    answer("loaded")
    if "function" in job:
        holder = names["Solution"]() if "Solution" in names else None
        function = getattr(holder, job["function"], None) or names[job["function"]]
        for arguments in job["arguments"]:
            answer(value_of(function, arguments))
    else:
        for test in job["tests"]:
            answer("true" if passes(test, names) else "false")


if __name__ == "__main__":
    set_limits(json.loads(sys.argv[1]))
    sys.stdout.write("started\n")
    sys.stdout.flush()
    if sys.argv[2] == "program":
        run_program()
    else:
        run_tests()
