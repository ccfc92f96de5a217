"""What a tracker must know when the run goes on: RUN/trackers/NAME.json, replaced as a whole."""

from __future__ import annotations

import fcntl
import json
import os
import pathlib
from typing import Any

from sluice.trackers.tracker import CannotTell


class Memory:
    """How many iterations it was told, and what its client calls the run. Of one process at a time, from now until that ends."""

    def __init__(self, folder: pathlib.Path, tracker: str) -> None:
        self._file = folder / "trackers" / f"{tracker}.json"
        self._file.parent.mkdir(exist_ok=True)
        _lock(self._file.with_suffix(".lock"))
        self._values = _values_of(self._file)

    @property
    def told(self) -> int:
        return int(self._values.get("iterations_told", 0))

    @property
    def run(self) -> str | None:
        """The client's own id of the run; None: it knows none yet."""
        return self._values.get("run")

    def keep(self, **values: Any) -> None:
        self._values |= values
        part = self._file.with_suffix(".part")
        part.write_text(json.dumps(self._values))
        os.replace(part, self._file)


def _lock(path: pathlib.Path) -> None:
    """Until this process ends. A lock of fcntl, which processes that a client leaves after do not hold on to as they would to
    flock's."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        raise CannotTell("another process tells it, that of a run or rlhf-run track; wait until that has ended") from None
    except OSError:  # a file system without locks
        pass


def _values_of(file: pathlib.Path) -> dict[str, Any]:
    if not file.exists():
        return {}
    try:
        values = json.loads(file.read_text())
    except ValueError:
        values = None
    if (not isinstance(values, dict) or not isinstance(values.get("iterations_told", 0), int) or
        not isinstance(values.get("run"), str | None)):
        raise CannotTell(f"{file} is damaged; move it away, and all of the run is told again")
    return values
