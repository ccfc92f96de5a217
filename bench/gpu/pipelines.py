"""Runs of pipelines/ with all their models on one device."""

import json
import pathlib
import tempfile
import tomllib

from cases import Failed, output_of
from place import PIPELINES, PROGRAM, environment

DISTANCE, MOST_DISTANCE = "policy/logprob_difference_max", 1e-3  # the rounding of models with a third of a million parameters


def laid_over(below, above):
    """The values of a pipeline over those that it extends."""
    merged = dict(below)
    for key, value in above.items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = laid_over(merged[key], value) if both else value
    return merged


def whole(path):
    layer = tomllib.loads(path.read_text())
    return laid_over(whole(path.parent / layer["extends"]), layer) if "extends" in layer else layer


def tables(path, name):
    return {key: table for key, table in whole(path).get(name, {}).items() if isinstance(table, dict)}


def models_on(path, device):
    """Those with weights of their own."""
    return {f"models.{model}.device": device.name for model, table in tables(path, "models").items() if "base_of" not in table}


def few_groups(path):
    sources = {name: node["groups_per_iteration"]
               for name, node in tables(path, "nodes").items() if "groups_per_iteration" in node}
    return {f"nodes.{name}.groups_per_iteration": min(groups, 12) for name, groups in sources.items()}


def run(name, device=None, **overrides):
    """The rows of metrics.jsonl; without a device on the CPU."""
    path = PIPELINES / f"{name}.toml"
    values = (models_on(path, device) if device else {}) | overrides
    sets = [word for key, value in values.items() for word in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        run_folder = pathlib.Path(folder) / "run"
        output_of([PROGRAM, "run", path, "--run-dir", run_folder, *(device.for_program() if device else []), *sets],
                  env=environment())
        return [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]


def two_iterations(name, device):
    """That they run, and that training computes the log-probabilities that were sampled with, where there are such."""
    rows = run(name, device, **few_groups(PIPELINES / f"{name}.toml"), **{"pipeline.iterations": 2})
    distances = [row[DISTANCE] for row in rows if DISTANCE in row]
    if max(distances, default=0) > MOST_DISTANCE:
        raise Failed(f"log-probabilities are {max(distances)} from those that were sampled with")
    return {"iterations": len(rows)} | ({"logprob_difference_max": max(distances)} if distances else {})
