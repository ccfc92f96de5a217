"""All tests that a device has: a skipped one is a failure. Every pipeline. The sanitizers of CUDA over our kernels."""

import shutil

import peaks
import pipelines
import programs
from cases import Case, Failed, LeftOut, output_of
from place import PIPELINES, TESTS, environment

SECONDS = 480
SANITIZER = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
KERNELS = "*PagedDecodeAttention*:*TrainingOperators*cuda_0*"


def sanitized(device, tool, program, filter):
    if not device.is_gpu:
        raise LeftOut(f"{device.name} is no GPU")
    if SANITIZER is None:
        raise Failed("there is no compute-sanitizer")
    said = output_of([SANITIZER, "--tool", tool, "--error-exitcode", "9", TESTS[program], f"--gtest_filter={filter}"], env=environment())
    return {"summary": next((line for line in said.splitlines() if "SUMMARY" in line), "")}


def cases(device, answers):
    del answers
    on_device = f"*cuda_0*:{KERNELS}" if device.is_gpu else "*FakeDevice*"
    return [
        Case("peaks", 60, lambda: peaks.measure(device)),
        *(Case(f"tests of {program}", 120, lambda program=program: programs.tests(program, on_device)) for program in TESTS),
        Case("memcheck of kernels", 90, lambda: sanitized(device, "memcheck", "models", KERNELS)),
        Case("racecheck of kernels", 90, lambda: sanitized(device, "racecheck", "models", KERNELS)),
        Case("memcheck of a model", 90, lambda: sanitized(device, "memcheck", "devices", "*NodesOnDevice.LogProbabilitiesAgree/cuda_0")),
        *(Case(f"two iterations of {path.stem}", 40, lambda path=path: pipelines.two_iterations(path.stem, device))
          for path in sorted(PIPELINES.glob("*.toml"))),
    ]
