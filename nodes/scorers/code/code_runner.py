"""What runs first in the sandbox of a solution (code_runs.cpp): sets limits, then runs /sandbox/solution.py.

usage: runner.py LIMITS program    the solution as a program, with this stdin and stdout
       runner.py LIMITS calls      a line {"function": "f", "arguments": [[1, 2], ...]} on stdin asks for calls; each is answered
                                   with a line: the value as JSON, or nothing where it raised
       runner.py LIMITS serve      code_judge.py runs the tests elsewhere and asks for what they need of the solution

LIMITS is {"RLIMIT_CPU": 10, ...}. The first line on stdout is "started"; but for programs, "loaded" comes once the solution is.
The solution can do to all of this what it wants: nothing here knows what the tests expect, and nothing that is said here is a
verdict.
"""

import json
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


def loaded_names(channel):
    names = {"__name__": "solution", "__file__": "solution.py", "__builtins__": __builtins__}
    exec(solution(), names)
    channel.out.write(b"loaded\n")
    channel.out.flush()
    return names


def value_of(function, arguments):
    try:
        return json.dumps(function(*arguments))
    except BaseException:  # SystemExit too
        return ""


def answer_calls(channel):
    job = channel.receive()
    names = loaded_names(channel)
    holder = names["Solution"]() if "Solution" in names else None
    function = getattr(holder, job["function"], None) or names[job["function"]]
    for arguments in job["arguments"]:
        channel.out.write((value_of(function, arguments) + "\n").encode())
        channel.out.flush()


def serve_tests(channel):
    from sluice_server import Server
    Server(channel, loaded_names(channel)).serve()


if __name__ == "__main__":
    set_limits(json.loads(sys.argv[1]))
    sys.stdout.write("started\n")
    sys.stdout.flush()
    if sys.argv[2] == "program":
        run_program()
    else:
        from sluice_values import take_channel
        {"calls": answer_calls, "serve": serve_tests}[sys.argv[2]](take_channel())
