"""python -m sluice.trackers RUN --project NAME [--afterwards] --to TRACKER...

Tells trackers of a run until its standard input ends, then what is left. What goes wrong is a line of standard output,
a warning of the run; one that begins with "note: " is none. The exit code tells only of what this program itself did
wrong.
"""

from __future__ import annotations

import argparse
import functools
import os
import pathlib
import select
import shlex
import sys
from typing import Any

from sluice.trackers.config import config_of
from sluice.trackers.tell import tell
from sluice.trackers.tracker import RunInfo
from sluice.trackers.watch import Teller, await_signals, watch

_LEAST_PATIENCE = 5.0  # seconds: over a network a client may well need some
_PATIENCE = 30.0  # [log] tracker_seconds where it is not known


def link_outside(run: pathlib.Path) -> pathlib.Path | None:
    """A link by which something outside of the run folder would be read or written, as that of a stranger may have."""
    inside = run.resolve()
    paths = [run / "trackers", *run.glob("*.jsonl")]
    for above, folders, files in os.walk(run / "trackers"):
        paths += [pathlib.Path(above) / name for name in folders + files]
        folders[:] = [name for name in folders if "run-" not in name]  # of earlier processes, where wandb has links to its logs
    return next((path for path in paths if path.is_symlink() and not path.resolve().is_relative_to(inside)), None)


def patience_of(config: dict[str, Any]) -> float:
    """How many seconds a client may be silent while the run goes on."""
    seconds = config.get("log.tracker_seconds")
    return max(_LEAST_PATIENCE, float(seconds)) if isinstance(seconds, int | float) else _PATIENCE


def run_is_over() -> bool:
    return bool(select.select([0], [], [], 0)[0])


class Warnings:
    """Lines of standard output, each once: what is wrong with the run folder every teller finds."""

    def __init__(self) -> None:
        sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
        self._said: set[str] = set()

    def say(self, warning: str) -> None:
        if warning not in self._said:
            print(warning, flush=True)
        self._said.add(warning)

    def note(self, text: str) -> None:
        """Nothing is wrong."""
        print(f"note: {text}", flush=True)


def remedy(run: pathlib.Path, names: list[str]) -> str:
    return f"; the rest is told with: rlhf-run track {shlex.quote(str(run))} --to " + " --to ".join(names)


def say_who_is_not_waited_for(tellers: list[Teller], run: pathlib.Path, warnings: Warnings) -> None:
    waiting = [teller for teller in tellers if not teller.ended]
    for teller in waiting:
        for warning in teller.reported():
            warnings.say(warning)
    left = [teller.name for teller in tellers if not teller.told_all]
    names = ", ".join(teller.name for teller in waiting if not teller.told_all)
    if names:
        warnings.say(f"the end of the run does not wait longer for {names}{remedy(run, left)}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="sluice.trackers")
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("--project", required=True)
    parser.add_argument("--afterwards", action="store_true", help="nothing but its user ends the wait")
    parser.add_argument("--to", nargs="+", required=True)
    arguments = parser.parse_args()
    warnings = Warnings()
    os.nice(10)  # the run goes first
    if (link := link_outside(arguments.run)) is not None:
        warnings.say(f"trackers are not told of this run: {link} leads out of the run folder; remove it")
        return
    run = RunInfo(arguments.run, arguments.project, config_of(arguments.run))
    patience = patience_of(run.config)
    await_signals()
    tellers = [Teller(name, remedy(run.folder, [name]), functools.partial(tell, name, run))
               for name in dict.fromkeys(arguments.to)]

    def look(teller: Teller) -> None:
        for warning in teller.warnings():
            warnings.say(warning)
        silence = teller.newly_silent(patience)
        if silence is not None and arguments.afterwards:
            warnings.note(f"{teller.name} has not answered for {silence:g} s; its client decides how long it tries. "
                          "Ctrl-C ends that: what it was told is kept")
        elif silence == patience and not run_is_over():
            warnings.say(f"{teller.name} has not answered for {patience:g} s; the run goes on, and tells "
                         "it the rest when it does")

    if not watch(tellers, look) and run_is_over():
        say_who_is_not_waited_for(tellers, run.folder, warnings)


if __name__ == "__main__":
    main()
