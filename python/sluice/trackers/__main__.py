"""python -m sluice.trackers RUN --project NAME --to TRACKER...

Tells trackers of a run until its standard input ends, then what is left. What goes wrong is a line of standard output, a warning of the
run; the exit code tells only of what this program itself did wrong.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pathlib
import sys
import threading
from typing import IO, Any

from sluice.trackers.follow import RunFiles
from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker

_LOOK = 0.5  # seconds between two looks at the folder


class Told:
    """A tracker and how far it has come. A failure ends it with one warning."""

    def __init__(self, name: str, run: RunInfo, warnings: IO[str]) -> None:
        self._name = name
        self._warnings = warnings
        self._memory = Memory(run.folder, name)
        self._tracker: Tracker | None = None
        self._next = self._memory.told
        try:
            self._tracker = importlib.import_module(f"sluice.trackers.to_{name}").start(run, self._memory)
        except ImportError as error:
            self._warn(f"{name} is not told of this run: {error}; {sys.executable} -m pip install {name}")
        except Exception as error:
            self._fail(error)

    @property
    def works(self) -> bool:
        return self._tracker is not None

    def tell(self, iteration: int, values: dict[str, float], samples: dict[str, list[dict[str, Any]]]) -> None:
        if self._tracker is None or iteration < self._next:
            return
        try:
            for name, rows in samples.items():
                self._tracker.samples(iteration, name, rows)
            self._tracker.metrics(iteration, values)
        except Exception as error:
            self._fail(error)
            return
        self._next = iteration + 1

    def keep(self) -> None:
        if self.works and self._next != self._memory.told:
            self._memory.keep(iterations_told=self._next)

    def close(self) -> None:
        try:
            if self._tracker is not None:
                self._tracker.close()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        self._tracker = None
        self._warn(f"{self._name} is told no more of this run: {type(error).__name__}: {str(error)[:500]}")

    def _warn(self, warning: str) -> None:
        print(" ".join(warning.split()), file=self._warnings, flush=True)


def flat(table: dict[str, Any], above: str = "") -> dict[str, Any]:
    """{"nodes": {"a": {"b": 1}}} as {"nodes.a.b": 1}."""
    keys: dict[str, Any] = {}
    for name, value in table.items():
        keys |= flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return keys


def config_of(run: pathlib.Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # Python 3.10
        return {}
    try:
        return flat(tomllib.loads((run / "pipeline.toml").read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError):  # damaged, or gone: its metrics can be told all the same
        return {}


def link_outside(run: pathlib.Path) -> pathlib.Path | None:
    """A link by which something outside of the run folder would be read or written, as that of a stranger may have."""
    inside = run.resolve()
    paths = [run / "trackers", *run.glob("*.jsonl")]
    for above, folders, files in os.walk(run / "trackers"):
        paths += [pathlib.Path(above) / name for name in folders + files]
        folders[:] = [name for name in folders if "run-" not in name]  # of earlier processes, where wandb has links to its logs
    return next((path for path in paths if path.is_symlink() and not path.resolve().is_relative_to(inside)), None)


def take_output() -> IO[str]:
    """Our own standard output. What clients print goes to stderr."""
    warnings = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="backslashreplace")
    os.dup2(2, 1)
    return warnings


def wait_for_end(over: threading.Event) -> None:
    while os.read(0, 4096):  # not by sys.stdin, whose lock a thread must not hold when the interpreter ends
        pass
    over.set()


def follow(files: RunFiles, trackers: list[Told], over: threading.Event) -> None:
    """Until the run is over and all was told, or no tracker is left."""
    while any(tracker.works for tracker in trackers):
        was_over = over.is_set()  # before the look, so that nothing comes behind the last one
        for iteration, values, samples in files.new_iterations():
            for tracker in trackers:
                tracker.tell(iteration, values, samples)
        for tracker in trackers:
            tracker.keep()
        if was_over:
            return
        over.wait(_LOOK)


def main() -> None:
    parser = argparse.ArgumentParser(prog="sluice.trackers")
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--project", required=True)
    parser.add_argument("--to", nargs="+", required=True)
    arguments = parser.parse_args()
    warnings = take_output()
    os.nice(10)  # the run goes first
    over = threading.Event()
    threading.Thread(target=wait_for_end, args=(over,), daemon=True).start()
    if (link := link_outside(arguments.run)) is not None:
        print(f"trackers are not told of this run: {link} leads out of the run folder; remove it", file=warnings, flush=True)
        return
    run = RunInfo(arguments.run, arguments.project, config_of(arguments.run))
    trackers = [Told(name, run, warnings) for name in arguments.to]
    follow(RunFiles(arguments.run, lambda warning: print(warning, file=warnings, flush=True)), trackers, over)
    for tracker in trackers:
        tracker.close()
    sys.stdout.flush()
    os._exit(0)  # whatever threads the clients have left running


if __name__ == "__main__":
    main()
