"""Trackio, in TRACKIO_DIR (else RUN/trackers/trackio)."""

from __future__ import annotations

import os
from typing import Any

from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker, table_of


class Trackio:
    def __init__(self, run: RunInfo, memory: Memory) -> None:
        os.environ.setdefault("TRACKIO_DIR", str(run.place("trackio").resolve()))  # which it reads as it is imported
        import trackio
        self._client = trackio
        trackio.init(project=run.project, name=memory.run or run.name, config=run.config,
                     resume="allow" if memory.run else "never")
        memory.keep(run=run.name)

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        self._client.log(values, step=iteration)

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        self._client.log({name: self._client.Table(**table_of(rows))}, step=iteration)

    def close(self) -> None:
        self._client.finish()


def start(run: RunInfo, memory: Memory) -> Tracker:
    return Trackio(run, memory)
