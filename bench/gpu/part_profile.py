"""Where the time goes: the kernels of a few decoding steps and of a training step, each by its own, as Nsight Compute times them.
A model of four layers, so that it takes seconds: a layer of a large one takes the same."""

import csv
import dataclasses
import io
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import peaks
from cases import Case, Failed, LAST_CHARACTERS, LeftOut
from place import BENCHES, environment

SECONDS = 240
NCU = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
METRIC = "gpu__time_duration.sum"
LAYERS, SHOWN, NAME_CHARACTERS = 4, 24, 60
UNITS = {"ns": 1e-3, "us": 1, "usecond": 1, "nsecond": 1e-3, "ms": 1e3, "msecond": 1e3}


def short(name):
    """A kernel's name without its arguments, spaces and what it is inside of."""
    return re.sub(r"\(anonymous namespace\)::|<unnamed>::|at::native::|void |\w+::", "",
                  name.split("(")[0] if "<" not in name else name)[:NAME_CHARACTERS]


def microseconds(report):
    """{kernel: (times, microseconds in all)}"""
    found = {}
    lines = report[report.index('"ID"'):] if '"ID"' in report else ""
    for row in csv.DictReader(io.StringIO(lines)):
        if row.get("Metric Name") == METRIC:
            times, total = found.get(short(row["Kernel Name"]), (0, 0))
            found[short(row["Kernel Name"])] = (times + 1,
                                                total + float(row["Metric Value"].replace(",", "")) * UNITS[row["Metric Unit"]])
    return found


def profiled(device, program, words, questions, skip, count):
    if not device.is_gpu:
        raise LeftOut(f"{device.name} is no GPU")
    if NCU is None:
        raise Failed("there is no ncu")
    ncu = [NCU, "--clock-control", "none", "--cache-control", "none", "--metrics", METRIC, "--csv", "--launch-skip", skip,
           "--launch-count", count]
    command = [str(word) for word in (*ncu, BENCHES / program, *words, *device.for_bench())]
    asked = "".join(json.dumps(question) + "\n" for question in questions)
    done = subprocess.run(command, input=asked, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    kernels = microseconds(done.stdout)
    if not kernels:
        raise Failed(done.stdout[-LAST_CHARACTERS:])
    ranked = sorted(kernels.items(), key=lambda item: -item[1][1])
    return {"kernels": sum(times for times, _ in kernels.values()), "microseconds": sum(total for _, total in kernels.values()),
            "slowest": {name: f"{times} x {total / times:.1f}" for name, (times, total) in ranked[:SHOWN]}}


def on_model(size, measure):
    from harness import shapes
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        shapes.SIZES["profiled"] = dataclasses.replace(shapes.SIZES[size], layers=LAYERS)
        return measure(shapes.write_model(pathlib.Path(folder) / "model", "profiled"))


def decoding(device, size, batch, context=512, steps=200):
    """Two or three of its steps: the kernels after those that read prompts."""
    question = dict(ask="decode", batch=batch, context=context, steps=steps)
    return on_model(size, lambda model: profiled(device, "generation", [model, "bfloat16", 4], [question], skip=4000, count=160))


def training(device, size, tokens=8192, length=1024):
    return on_model(size, lambda model: profiled(device, "training", [model, "bfloat16", 4],
                                                 [dict(tokens=tokens, length=length)] * 2, skip=0, count=1600))


def cases(device, answers):
    del answers
    return [
        Case("peaks", 60, lambda: peaks.measure(device)),
        *(Case(f"decoding, {size}, {batch}", 60, lambda size=size, batch=batch: decoding(device, size, batch))
          for size, batch in (("1.5b", 1), ("1.5b", 64), ("8b", 1))),
        Case("training, 1.5b", 90, lambda: training(device, "1.5b")),
    ]
