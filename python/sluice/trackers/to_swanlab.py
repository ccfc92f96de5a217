"""SwanLab. SWANLAB_MODE says where to (offline, local); files are in SWANLAB_LOG_DIR (else RUN/trackers/swanlab)."""

from __future__ import annotations

import os
from typing import Any

import swanlab

from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker, columns_of


class SwanLab:
    def __init__(self, run: RunInfo, memory: Memory) -> None:
        place = os.environ.get("SWANLAB_LOG_DIR") or str(run.place("swanlab"))
        self._run = swanlab.init(project=run.project, name=run.name, config=run.config, log_dir=place, id=memory.run,
                                 resume="allow")
        memory.keep(run=self._run.id)

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        self._run.log(values, step=iteration)

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        texts = ["\n".join(f"{column}: {row.get(column)}" for column in columns_of(rows)) for row in rows]
        self._run.log({name: [swanlab.Text(text) for text in texts]}, step=iteration)

    def close(self) -> None:
        self._run.finish()


def start(run: RunInfo, memory: Memory) -> Tracker:
    return SwanLab(run, memory)
