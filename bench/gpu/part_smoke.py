"""Whether anything is wrong that would spoil the other parts: programs start, models train on the device, each bench answers."""

import pathlib
import tempfile

import measures
import peaks
import pipelines
import programs
from cases import Case, Failed, output_of
from place import PIPELINES, PROGRAM, environment

SECONDS = 240
LEARNING = ("ppo", "grpo", "dapo", "dpo", "sft")


def version():
    return {"version": output_of([PROGRAM, "--version"], env=environment()).strip()}


def is_there(device):
    """`validate` warns of a device that the machine lacks."""
    path = PIPELINES / "ppo.toml"
    sets = [word for key, value in pipelines.models_on(path, device).items() for word in ("--set", f"{key}={value}")]
    said = output_of([PROGRAM, "validate", path, *device.for_program(), *sets], env=environment())
    if f"is on {device.name}:" in said:
        raise Failed(said)
    return {}


def tiny(measure, device, **sizes):
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        return measure(device, {}, pathlib.Path(folder), **sizes)


def cases(device, answers):
    del answers  # nothing here builds upon another
    on_device = "*cuda_0*:*PagedDecodeAttention*" if device.is_gpu else "*FakeDevice*"
    return [
        Case("the program starts", 30, version),
        Case("the device is there", 30, lambda: is_there(device)),
        Case("peaks", 60, lambda: peaks.measure(device)),
        Case("models on the device", 120, lambda: programs.tests("devices", on_device), alone=False),
        *(Case(f"two iterations of {name}", 40, lambda name=name: pipelines.two_iterations(name, device), alone=False)
          for name in LEARNING),
        Case("attention", 30, lambda: tiny(measures.attention, device, sequences=3, context=40, times=2)),
        Case("log-probabilities", 30,
             lambda: tiny(measures.logprobs, device, actions=64, hidden=32, vocabulary=97, backward=True, times=2)),
        Case("publication", 30, lambda: tiny(measures.publication, device, size="tiny", times=2)),
        Case("decoding", 30, lambda: tiny(measures.decoding, device, size="tiny", batches=[2], context=16, steps=4, times=1)),
        Case("a training step", 30, lambda: tiny(measures.training, device, size="tiny", tokens=64, length=16, times=1)),
    ]
