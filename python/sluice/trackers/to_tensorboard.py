"""Event files in RUN/trackers/tensorboard: metrics as in the run folder's own, and samples as text."""

from __future__ import annotations

import time
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.types_pb2 import DT_STRING
from tensorboard.plugins.text import metadata
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from sluice.trackers.memory import Memory
from sluice.trackers.tracker import RunInfo, Tracker, columns_of


class TensorBoard:
    def __init__(self, run: RunInfo) -> None:
        self._writer = EventFileWriter(str(run.place("tensorboard")))

    def metrics(self, iteration: int, values: dict[str, float]) -> None:
        self._write(iteration, [Summary.Value(tag=name, simple_value=value) for name, value in values.items()])
        self._writer.flush()

    def samples(self, iteration: int, name: str, rows: list[dict[str, Any]]) -> None:
        columns = columns_of(rows)
        lines = [columns, ["---"] * len(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
        table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
        text = TensorProto(dtype=DT_STRING, tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
                           string_val=[table.encode()])
        about = metadata.create_summary_metadata(display_name=name, description="")
        self._write(iteration, [Summary.Value(tag=name, tensor=text, metadata=about)])

    def close(self) -> None:
        self._writer.close()

    def _write(self, iteration: int, values: list[Any]) -> None:
        self._writer.add_event(Event(wall_time=time.time(), step=iteration, summary=Summary(value=values)))


def _cell(value: Any) -> str:
    return str(value).replace("|", "\\|").replace("\n", "<br>")


def start(run: RunInfo, memory: Memory) -> Tracker:
    return TensorBoard(run)
