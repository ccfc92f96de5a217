"""Our CUDA kernels compile for every architecture that the library holds, and keep all that they count with in registers.

A stack frame or a spilled register is memory of the device that a kernel did not ask for: it costs more than what it saves, and
nothing else shows it. Needs nvcc, and no GPU."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
NVCC = os.environ.get("SLUICE_NVCC") or shutil.which("nvcc")
# A100; H100 and H200, with what only they have; B200.
ARCHITECTURES = ("sm_80", "sm_90a", "sm_100")
ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
USED = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def compiled(file, architecture):
    """What nvcc and its assembler say of the file."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-std=c++17", "-O3", f"-I{ROOT}", f"-arch={architecture}", "-Xptxas=-v", "-cubin"]
        return subprocess.run([NVCC, *options, file, "-o", f"{folder}/kernels.cubin"], capture_output=True, text=True)


def kernels_of(report):
    """(kernel, bytes of its stack frame, bytes that it spills)"""
    found, name = [], ""
    for line in report.splitlines():
        if entry := ENTRY.search(line):
            name = entry[1]
        elif (used := USED.search(line)) and name:
            found.append((name, int(used[1]), int(used[2]) + int(used[3])))
            name = ""
    return found


def faults_of(report):
    return [f"{name}: a stack frame of {frame} bytes, {spilled} bytes spilled"
            for name, frame, spilled in kernels_of(report) if frame or spilled]


@unittest.skipIf(NVCC is None, "there is no nvcc")
class Kernels(unittest.TestCase):
    def test_stay_in_registers_on_every_architecture(self):
        files = [path for path in sorted((ROOT / "models/cuda").glob("*.cu")) if "__global__" in path.read_text()]
        self.assertGreater(len(files), 0)
        asked = [(file, architecture) for file in files for architecture in ARCHITECTURES]
        with ThreadPoolExecutor(len(ARCHITECTURES)) as pool:
            for (file, architecture), done in zip(asked, pool.map(lambda of: compiled(*of), asked)):
                with self.subTest(file=file.name, architecture=architecture):
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertGreater(len(kernels_of(done.stderr)), 0, done.stderr)
                    self.assertEqual(faults_of(done.stderr), [])

    def test_with_a_stack_frame_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "kernel.cu"
            file.write_text("__global__ void kernel(float* x, int n) {\n  float all[64];\n  for (int i = 0; i < 64; ++i) all[i] "
                            "= x[i];\n  for (int i = 0; i < n; ++i) x[i] = all[(i * n) % 64];\n}\n")
            done = compiled(file, ARCHITECTURES[0])
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(len(faults_of(done.stderr)), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
