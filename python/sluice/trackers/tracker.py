"""What a tracker is to this package. Each has a module `to_NAME`, with a function `start(run, memory) -> Tracker`."""

from __future__ import annotations

import dataclasses
import math
import pathlib
from typing import Any, Protocol

from sluice._samples import values_of


class CannotTell(Exception):
    """Why a tracker is not told of a run, and what to do. Its whole text is for the user."""


@dataclasses.dataclass(frozen=True)
class RunInfo:
    """What is told of a run as a whole."""

    folder: pathlib.Path
    project: str
    config: dict[str, Any]  # every key of its pipeline, as "nodes.generate.max_new_tokens"; no passwords

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    def place(self, tracker: str) -> pathlib.Path:
        """A folder for the files of a client, unless its own environment variable says another."""
        place = self.folder / "trackers" / tracker
        place.mkdir(parents=True, exist_ok=True)
        return place


class Tracker(Protocol):
    """Told one iteration after the other. Whatever it raises is a warning, and it is told no more."""

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        """The finite metrics of an iteration."""

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        """Some samples of it, of one file. Before its metrics."""

    def close(self) -> None:
        """Nothing more comes: what waits is sent."""


def columns_of(rows: list[dict[str, Any]]) -> list[str]:
    """Of a table of samples: all that a row has but lists of numbers."""
    return [name for name, value in rows[0].items() if not isinstance(value, list)]


def table_of(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The same as `columns` and `data`, for a client that wants one type in a column: a number that is not finite is none."""
    columns = columns_of(rows)
    cells = zip(*(map(_finite_or_none, values_of(name, rows)) for name in columns))
    return {"columns": columns, "data": [list(row) for row in cells]}


def _finite_or_none(cell: Any) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
