"""The files of a run folder, read as they grow."""

from __future__ import annotations

import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

_SHOWN = 8  # samples of an iteration and a file that trackers are given


class GrowingFile:
    """Rows of JSON lines. A line that is not whole yet comes with a later look; those that are damaged are left out, and the
    first is told."""

    def __init__(self, path: pathlib.Path, warn: Callable[[str], None]) -> None:
        self._path = path
        self._warn = warn
        self._read = 0
        self._lines = 0
        self._warned = False

    def new_rows(self) -> Iterator[dict[str, Any]]:
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                self._lines += 1
                try:
                    row = json.loads(line)
                except (ValueError, RecursionError):
                    self._tell_damage()
                    continue
                yield row

    def _tell_damage(self) -> None:
        if not self._warned:
            self._warn(f"{self._path}, line {self._lines} is damaged; trackers are not told of such lines")
        self._warned = True


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max  # which an integer may exceed


class RunFiles:
    """Metrics by iteration, with some samples of each."""

    def __init__(self, folder: pathlib.Path, warn: Callable[[str], None]) -> None:
        self._folder = folder
        self._warn = warn
        self._metrics = GrowingFile(folder / "metrics.jsonl", warn)
        self._files: dict[str, GrowingFile] = {}
        self._samples: dict[str, dict[int, list[dict[str, Any]]]] = {}  # those whose metrics have not come, by file and iteration

    def new_iterations(self) -> Iterator[tuple[int, dict[str, float], dict[str, list[dict[str, Any]]]]]:
        """Iteration, its finite metrics, and samples by file. What is not whole yet comes with a later call."""
        rows = [row for row in self._metrics.new_rows() if isinstance(row, dict) and isinstance(row.get("iteration"), int)]
        self._read_samples()  # after the metrics, before which they were written
        for row in rows:
            iteration = int(row["iteration"])
            values = {name: float(value) for name, value in row.items() if name != "iteration" and _is_finite(value)}
            samples = {name: by_iteration.pop(iteration)
                       for name, by_iteration in self._samples.items() if iteration in by_iteration}
            yield iteration, values, samples

    def _read_samples(self) -> None:
        for path in sorted(self._folder.glob("*.jsonl")):
            if path.name == "metrics.jsonl" or not path.is_file():
                continue
            by_iteration = self._samples.setdefault(path.stem, {})
            for row in self._files.setdefault(path.stem, GrowingFile(path, self._warn)).new_rows():
                if not isinstance(row, dict) or not isinstance(row.get("iteration"), int):
                    break  # a file of someone else
                rows = by_iteration.setdefault(row["iteration"], [])
                if len(rows) < _SHOWN:
                    rows.append(row)
