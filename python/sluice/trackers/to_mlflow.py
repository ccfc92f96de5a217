"""MLflow, at MLFLOW_TRACKING_URI, else files in RUN/trackers/mlflow. mlflow-skinny has all that is needed."""

from __future__ import annotations

import os
import time
from typing import Any

import mlflow
from mlflow.entities import Metric, Param
from mlflow.tracking import MlflowClient

from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker

_MOST_PARAMS = 100  # that one call takes
_LONGEST_PARAM = 500


class Mlflow:
    def __init__(self, run: RunInfo, memory: Memory) -> None:
        place = os.environ.get("MLFLOW_TRACKING_URI")
        if not place:
            os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # else it wants a database
            place = run.place("mlflow").resolve().as_uri()
        mlflow.set_tracking_uri(place)
        self._client = MlflowClient()
        if memory.run is None:
            experiment = self._client.get_experiment_by_name(run.project)
            number = experiment.experiment_id if experiment else self._client.create_experiment(run.project)
            made = self._client.create_run(number, run_name=run.name).info.run_id
            params = [Param(key, str(value)[:_LONGEST_PARAM]) for key, value in run.config.items()]
            for begin in range(0, len(params), _MOST_PARAMS):
                self._client.log_batch(made, params=params[begin:begin + _MOST_PARAMS])
            memory.keep(run=made)
        self._run = str(memory.run)
        self._client.update_run(self._run, status="RUNNING")

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        now = time.time_ns() // 1_000_000
        self._client.log_batch(self._run, metrics=[Metric(name, value, now, iteration) for name, value in values.items()])

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        self._client.log_dict(self._run, {"samples": rows}, f"{name}/{iteration:06}.json")

    def close(self) -> None:
        self._client.set_terminated(self._run)


def start(run: RunInfo, memory: Memory) -> Tracker:
    return Mlflow(run, memory)
