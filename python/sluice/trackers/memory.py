"""What a tracker must know when the run goes on: RUN/trackers/NAME.json, replaced as a whole."""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any


class Memory:
    """How many iterations it was told, and what its client calls the run."""

    def __init__(self, folder: pathlib.Path, tracker: str) -> None:
        self._file = folder / "trackers" / f"{tracker}.json"
        self._file.parent.mkdir(exist_ok=True)
        self._values: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}

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
