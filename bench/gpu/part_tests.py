"""All tests that a device has: a skipped one is a failure. Every pipeline. The sanitizers of CUDA over our kernels."""

import shutil
import subprocess

import peaks
import pipelines
import programs
from cases import LAST_CHARACTERS, Case, Failed, LeftOut
from place import PIPELINES, TESTS, environment

SECONDS = 480
SANITIZER = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
KERNELS = "*PagedDecodeAttention*:*OwnStepOf*plain_cuda_0*:*OwnStepOf*caps_cuda_0*:*TrainingOperators*cuda_0*"
# racecheck looks at our kernels alone, and breaks those of cuBLAS: tests that need none of these.
OURS = "kns=sluice"
WITHOUT_LIBRARY = "*PagedDecodeAttention*:" + ":".join(
    f"Devices/TrainingOperators.{name}*cuda_0" for name in ("Norm", "GatesAre", "Rotary", "OneStep"))


def sanitized(device, tool, program, filter, *words):
    if not device.is_gpu:
        raise LeftOut(f"{device.name} is no GPU")
    if SANITIZER is None:
        raise Failed("there is no compute-sanitizer")
    command = [SANITIZER, "--tool", tool, "--error-exitcode", "9", *words, TESTS[program], f"--gtest_filter={filter}",
               "--gtest_brief=1"]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace")
    if done.returncode != 0:  # what it says first is the reason of the rest
        raise Failed(f"{tool} ended with {done.returncode}: {done.stdout[:LAST_CHARACTERS]} ... {done.stdout[-LAST_CHARACTERS:]}")
    return {"summary": next((line for line in done.stdout.splitlines() if "SUMMARY" in line), "")}


def cases(device, answers):
    del answers
    on_device = "*cuda_0*:*PagedDecodeAttention*" if device.is_gpu else "*FakeDevice*"
    return [
        Case("peaks", 60, lambda: peaks.measure(device)),
        *(Case(f"tests of {program}", 120, lambda program=program: programs.tests(program, on_device), alone=False)
          for program in TESTS),
        Case("memcheck of kernels", 90, lambda: sanitized(device, "memcheck", "models", KERNELS), alone=False),
        Case("racecheck of kernels", 90, lambda: sanitized(device, "racecheck", "models", WITHOUT_LIBRARY, "--kernel-name", OURS),
             alone=False),
        Case("memcheck of a model", 90,
             lambda: sanitized(device, "memcheck", "devices", "*NodesOnDevice.LogProbabilitiesAgree/cuda_0"), alone=False),
        *(Case(f"two iterations of {path.stem}", 40, lambda path=path: pipelines.two_iterations(path.stem, device), alone=False)
          for path in sorted(PIPELINES.glob("*.toml"))),
    ]
