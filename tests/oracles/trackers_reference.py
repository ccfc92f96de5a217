"""What trackers have of a run, as their own packages read it, is what metrics.jsonl has: each number once, also after a resume.

    trackers_reference.py PROGRAM     with every client that this Python has; tensorboard and wandb must be there
"""

import importlib.util
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
REQUIRED = ("tensorboard", "wandb")
TRACKERS = ("tensorboard", "wandb", "mlflow", "trackio", "swanlab")  # named like their packages
SMALL = ["--set", "nodes.prompts.groups_per_iteration=8", "--set", "nodes.held_out.groups_per_iteration=8", "--set",
         "checkpoint.every_iterations=2", "--set", "log.project=sums", "--set", "log.tracker_seconds=120"]
PIPELINE = 'extends = "builtin:grpo"\n[nodes.samples]\ntype = "write_jsonl"\ninputs = ["score"]\n'


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def read_tensorboard(run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    reader = EventAccumulator(str(run / "trackers/tensorboard"), size_guidance={"scalars": 0, "tensors": 0})
    reader.Reload()
    table = reader.Tensors("samples")[0].tensor_proto.string_val[0].decode()
    assert table.startswith("| iteration | group | sample | prompt | response | score |\n"), table
    return [((tag, event.step), event.value) for tag in reader.Tags()["scalars"] for event in reader.Scalars(tag)]


def log_records(path):
    """The records of a file in the format of LevelDB's log after a header of 7 bytes, as offline runs of wandb and swanlab
    are."""
    data, at, whole = path.read_bytes(), 7, b""
    while at + 7 <= len(data):
        if (left := 32768 - at % 32768) < 7:
            at += left
            continue
        _, length, kind = struct.unpack("<IHB", data[at:at + 7])
        whole += data[at + 7:at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # the only or last part of a record
            yield whole
            whole = b""


def read_wandb(run):
    from wandb.proto import wandb_internal_pb2
    files = sorted((run / "trackers/wandb").glob("offline-run-*/run-*.wandb"))
    assert len({path.name for path in files}) == 1, "a run that goes on is another run"
    for path in files:
        for data in log_records(path):
            record = wandb_internal_pb2.Record.FromString(data)
            if record.WhichOneof("record_type") != "history":
                continue
            items = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
            for name, value in items.items():
                if isinstance(value, (int, float)) and not name.startswith(("_", "samples")):
                    yield (name, items["_step"]), value


def read_mlflow(run):
    from mlflow.tracking import MlflowClient
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    client = MlflowClient((run / "trackers/mlflow").as_uri())
    number = json.loads((run / "trackers/mlflow.json").read_text())["run"]
    told = client.get_run(number)
    assert told.info.status == "FINISHED" and told.data.params["nodes.generate.max_new_tokens"] == "6", told
    return [((metric.key, metric.step), metric.value) for name in told.data.metrics
            for metric in client.get_metric_history(number, name)]


def read_trackio(run):
    os.environ["TRACKIO_DIR"] = str(run / "trackers/trackio")
    from trackio.sqlite_storage import SQLiteStorage
    return [((name, row["step"]), value) for row in SQLiteStorage.get_logs("sums", run.name) for name, value in row.items()
            if isinstance(value, (int, float)) and name != "step"]


def read_swanlab(run):
    from swanlab.proto.swanlab.record.v1 import record_pb2
    for path in sorted((run / "trackers/swanlab").glob("run-*/*.swanlab")):
        for data in log_records(path):
            record = record_pb2.Record.FromString(data)
            if record.HasField("scalar"):
                yield (record.scalar.key, record.scalar.step), record.scalar.value.number


def run_program(program, names, *words):
    environment = {**os.environ, "SLUICE_PYTHON": sys.executable, "WANDB_MODE": "offline", "SWANLAB_MODE": "offline"}
    done = subprocess.run([program, *map(str, words), "--set", f"log.trackers={json.dumps(names)}"], capture_output=True,
                          text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", done.stderr


def main():
    names = [name for name in TRACKERS if importlib.util.find_spec(name)]
    assert set(REQUIRED) <= set(names), f"of {REQUIRED} only {names} are installed"
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        run = pathlib.Path(folder) / "run"
        (pathlib.Path(folder) / "p.toml").write_text(PIPELINE)
        run_program(sys.argv[1], names, "run", f"{folder}/p.toml", "--run-dir", run, "--set", "pipeline.iterations=2", *SMALL)
        run_program(sys.argv[1], names, "resume", run, "--set", "pipeline.iterations=4")
        rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        expected = {(name, row["iteration"]): value for row in rows
                    for name, value in row.items() if name != "iteration" and value is not None}
        assert len(rows) == 4 and len(expected) > 100
        for name in names:
            told = list(globals()[f"read_{name}"](run))
            rounded = float32 if name == "tensorboard" else float
            assert dict(told) == {key: rounded(value) for key, value in expected.items()}, name
            assert len(told) == len(expected), f"{name} was told something twice"
            print(f"{name}: {len(told)} numbers are those of metrics.jsonl")


if __name__ == "__main__":
    main()
