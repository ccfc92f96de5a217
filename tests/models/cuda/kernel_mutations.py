"""Spoils the code of our kernels, one place at a time, and sees that the test that runs it on the host fails.

    python3 tests/models/cuda/kernel_mutations.py [WORDS OF A NAME]

Needs no GPU, no nvcc and no build; two minutes. No part of the tests that always run."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "bench/gpu"), str(ROOT / "tests")]
import mutating  # noqa: E402
from place import torch_folder  # noqa: E402

KERNEL = "models/cuda/paged_decode_kernel.h"
SOURCES = ("tests/models/cuda/host_block.cpp", "tests/models/cuda/paged_decode_kernel_test.cpp", "base/random.cpp")
# Name; what is there; what takes its place.
MUTATIONS = [
    ("the key head of a query head", "head / (in.heads / in.kv_heads)", "head % in.kv_heads"),
    ("the row of a query", "static_cast<int64_t>(sequence) * in.heads + head) * dim", "static_cast<int64_t>(sequence) * in.kv_heads + head) * dim"),
    ("the row of a table", "static_cast<int64_t>(sequence) * in.table_width", "static_cast<int64_t>(sequence)"),
    ("the block of a token", "table[t / in.block_size]", "table[t / (in.block_size + 1)]"),
    ("the place in a block", "+ t % in.block_size", "+ t / in.block_size"),
    ("the row of a key", "(slot * in.kv_heads + kv_head)", "(slot * in.heads + kv_head)"),
    ("a window that is one shorter", "? length - in.window : 0", "? length - in.window + 1 : 0"),
    ("a window that is one longer", "? length - in.window : 0", "? length - in.window - 1 : 0"),
    ("where warps begin", "t = first + warp", "t = first + 1"),
    ("the stride of warps", "t += kWarps", "t += kWarps + 1"),
    ("the last token", "t < length; t += kWarps", "t < length - 1; t += kWarps"),
    ("the dimensions of a lane", "const int d = lane + i * kLanes;", "const int d = lane * kDims + i;"),
    ("too few dimensions of a lane", "head_dim <= 3 * kLanes", "head_dim <= 4 * kLanes"),
    ("where an exchange begins", "step = kLanes / 2; step > 0", "step = kLanes / 4; step > 0"),
    ("where an exchange ends", "step > 0; step /= 2", "step > 1; step /= 2"),
    ("a meeting", "  thread.meet();\n", ""),
    ("the largest score of all warps", "int w = 1; w < kWarps; ++w", "int w = 1; w < kWarps - 1; ++w"),
    ("the sum of all warps", "for (int w = 0; w < kWarps; ++w) sum +=", "for (int w = 1; w < kWarps; ++w) sum +="),
    ("the stride of the result", "d < dim; d += kThreads", "d < dim; d += kThreads + 1"),
    ("the soft cap", "in.softcap * tanhf(score / in.softcap)", "tanhf(score / in.softcap)"),
    ("the sum so far", "sum = sum * kept + share", "sum = sum + share"),
    ("the values so far", "values.of[i] * kept", "values.of[i]"),
    ("a sequence without tokens", "length > 0 ? value / sum : 0", "value / sum"),
]


def passes(kernel, folder):
    """Whether the test passes with this text of the kernel."""
    (folder / KERNEL).parent.mkdir(parents=True, exist_ok=True)
    (folder / KERNEL).write_text(kernel)
    torch, program = torch_folder(), folder / "test"
    headers = [f"-I{folder}", f"-I{ROOT}", f"-isystem{torch}/include"]
    libraries = ["-lgtest", "-lgtest_main", "-lpthread", f"-L{torch}/lib", "-lc10", f"-Wl,-rpath,{torch.resolve()}/lib"]
    subprocess.run(["c++", "-std=c++20", "-O1", *headers, *(ROOT / source for source in SOURCES), "-o", program, *libraries], check=True)
    return subprocess.run([program], capture_output=True).returncode == 0


def main():
    text = (ROOT / KERNEL).read_text()
    with tempfile.TemporaryDirectory() as folder:
        if not passes(text, pathlib.Path(folder)):
            raise SystemExit("the kernel as it is fails")
        return mutating.report((name, not passes(mutating.spoilt(name, KERNEL, text, there, instead), pathlib.Path(folder)))
                               for name, there, instead in mutating.chosen(MUTATIONS))


if __name__ == "__main__":
    raise SystemExit(main())
