#!/usr/bin/env python3
"""Writes tests/golden/engine/event_file.hex: an event file by the `tensorboard` package (2.21.0 wrote the committed one).

    python tests/oracles/event_file_reference.py          writes the golden file
    python tests/oracles/event_file_reference.py FOLDER   prints what TensorBoard reads in the event files of FOLDER

The first record of TensorBoard's writer also names the writer (`source_metadata`); that field is taken out, everything else is
as it was written. 32 bytes a line, in hexadecimal.
"""

import pathlib
import sys
import tempfile
from unittest import mock

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.tensorflow_stub.pywrap_tensorflow import PyRecordReader_New
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.summary.writer.record_writer import RecordWriter

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "engine" / "event_file.hex"

STARTED = 1700000000.25
# step, wall time, figures
ROWS = [
    (0, 1700000001.5, [("score_mean", 0.1), ("loss", -0.0), ("tokens", 5632.0)]),
    (1, 1700000002.75, [("score_mean", float("nan")), ("loss", float("inf")), ("kl_mean", -1e-42), ("huge", float("-inf"))]),
    (300, 1700000003.0, [("a_name_that_is_longer_than_one_byte_of_length_can_tell_" * 3, 1e30), ("größe", 3.0)]),
    (2**40, 1700000004.0, []),
]


def written_by_tensorboard(folder):
    """The bytes of the one event file in `folder`."""
    with mock.patch("time.time", return_value=STARTED):
        writer = EventFileWriter(str(folder))
    for step, wall_time, figures in ROWS:
        event = Event(wall_time=wall_time, step=step)
        event.summary.SetInParent()
        for name, value in figures:
            event.summary.value.add(tag=name, simple_value=value)
        writer.add_event(event)
    writer.close()
    (path,) = folder.iterdir()
    return path


def without_the_name_of_the_writer(path, output):
    reader = PyRecordReader_New(str(path))
    with open(output, "wb") as stream:
        records = RecordWriter(stream)
        while True:
            try:
                reader.GetNext()
            except Exception as error:  # tensorboard's own class for the end of a file
                if type(error).__name__ == "OutOfRangeError":
                    break
                raise
            event = Event.FromString(reader.record())
            event.ClearField("source_metadata")
            records.write(event.SerializeToString())
        records.flush()
    return output.read_bytes()


def print_what_is_read(folder):
    events = EventAccumulator(folder)
    events.Reload()
    for tag in events.Tags()["scalars"]:
        print(tag, [(scalar.step, scalar.wall_time, scalar.value) for scalar in events.Scalars(tag)])


def main():
    if len(sys.argv) == 2:
        return print_what_is_read(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "run").mkdir()
        content = without_the_name_of_the_writer(written_by_tensorboard(folder / "run"), folder / "stripped")
    OUTPUT.write_text("".join(content[i:i + 32].hex() + "\n" for i in range(0, len(content), 32)))


if __name__ == "__main__":
    main()
