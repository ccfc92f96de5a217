"""Weights & Biases. Its own variables say where to: WANDB_MODE=offline, WANDB_ENTITY, WANDB_DIR (else RUN/trackers/wandb)."""

from __future__ import annotations

import os
from typing import Any

import wandb

from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker, table_of


class Wandb:
    def __init__(self, run: RunInfo, memory: Memory) -> None:
        place = os.environ.get("WANDB_DIR") or str(run.place("wandb").parent)  # it adds "wandb"
        self._run = wandb.init(project=run.project, name=run.name, config=run.config, dir=place, id=memory.run, resume="allow",
                               settings=wandb.Settings(console="off"))
        memory.keep(run=self._run.id)

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        self._run.log(values, step=iteration)

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        self._run.log({name: wandb.Table(**table_of(rows))}, step=iteration)

    def close(self) -> None:
        self._run.finish()


def start(run: RunInfo, memory: Memory) -> Tracker:
    return Wandb(run, memory)
