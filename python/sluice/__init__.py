"""Sluice from Python: starts the program `rlhf-run`, which trains, and reads what it writes.

    run = sluice.run("builtin:grpo", {"pipeline.iterations": 10})
    for row in run:
        print(row["iteration"], row["reward/score_mean"])

The loop stays in C++: what is here is a process boundary, without bindings. See docs/python.md.
"""

from sluice._pipeline import Pipeline, Problem, plan, validate
from sluice._program import cmake_prefix, program
from sluice._run import Run, resume, run
from sluice.errors import PipelineError, RunError, SluiceError

__all__ = ["Pipeline", "PipelineError", "Problem", "Run", "RunError", "SluiceError", "cmake_prefix", "plan", "program", "resume",
           "run", "validate"]
