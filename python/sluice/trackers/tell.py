"""Tells one tracker of a run, in a process of its own."""

from __future__ import annotations

import importlib
import select
import sys

from sluice.trackers.follow import RunFiles
from sluice.trackers.memory import Memory
from sluice.trackers.report import Kind, Reporter
from sluice.trackers.tracker import CannotTell, RunInfo, Tracker

_LOOK = 0.5  # seconds between two looks at the folder


def tell(name: str, run: RunInfo, reporter: Reporter, over: int) -> None:
    """Until the descriptor `over` ends, then what is left. Whatever goes wrong is reported."""
    try:
        _start_and_tell(name, run, reporter, over)
    except CannotTell as why:
        reporter.report(Kind.FAILED, f"{name} is not told of this run: {why}")
    except BaseException as error:  # SystemExit, too
        reporter.report(Kind.FAILED, f"{name} is told no more of this run: {_what_happened(error)}")
    else:
        reporter.report(Kind.TOLD_ALL)


def _start_and_tell(name: str, run: RunInfo, reporter: Reporter, over: int) -> None:
    memory = Memory(run.folder, name)
    with reporter.call():
        tracker = _start(name, run, memory)
    _follow(run, tracker, memory, reporter, over)
    with reporter.call():
        tracker.close()


def _start(name: str, run: RunInfo, memory: Memory) -> Tracker:
    try:
        return importlib.import_module(f"sluice.trackers.to_{name}").start(run, memory)
    except ImportError as error:
        raise CannotTell(f"{error}; {sys.executable} -m pip install {name}") from error


def _follow(run: RunInfo, tracker: Tracker, memory: Memory, reporter: Reporter, over: int) -> None:
    files = RunFiles(run.folder, lambda warning: reporter.report(Kind.WARNS, warning))
    while True:
        was_over = _ends_within(over, 0)  # before the look, so that nothing comes after the last one
        for iteration, values, samples in files.new_iterations():
            if iteration < memory.told:
                continue
            with reporter.call():
                for file, rows in samples.items():
                    tracker.samples(iteration, file, rows)
                tracker.metrics(iteration, values)
            memory.keep(iterations_told=iteration + 1)
        if was_over:
            return
        _ends_within(over, _LOOK)


def _ends_within(over: int, seconds: float) -> bool:
    return bool(select.select([over], [], [], seconds)[0])


def _what_happened(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"its client called sys.exit({'' if error.code is None else error.code})"
    return f"{type(error).__name__}: {str(error)[:500]}"
