"""Spoils the code of our kernels, one place at a time, and sees that the test that runs it on the host fails.

    python3 tests/models/cuda/kernel_mutations.py [WORDS OF A NAME]

Needs no GPU, no nvcc and no build; ten minutes. No part of the tests that always run."""

import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent.parent
sys.path[:0] = [str(ROOT / "bench/gpu"), str(ROOT / "tests")]
import mutating  # noqa: E402
from place import torch_folder  # noqa: E402

CUDA, TESTS = "models/cuda/", "tests/models/cuda/"
HOST = (TESTS + "host_block.cpp", "base/random.cpp")
PAGED, NORM, GATED, TURN, LOGITS, FLAT = (
    CUDA + f"{name}_kernel.h" for name in ("paged_decode", "rms_norm", "gated", "turn", "logit_rows", "flat_step"))
MATHS = CUDA + "thread_maths.h"
# Name; what is there; what takes its place.
OF_PAGED = [
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
# Name; file; what is there; what takes its place.
MUTATIONS = [(name, PAGED, there, instead) for name, there, instead in OF_PAGED] + [
    ("a block's sum: a meeting", MATHS, "  thread.meet();\n  float sum = 0;", "  float sum = 0;"),
    ("a block's sum: where an exchange begins", MATHS, "int step = kLanes / 2; step > 0; step /= 2) x +=", "int step = kLanes / 4; step > 0; step /= 2) x +="),
    ("a block's sum: a warp is left out", MATHS, "w < kThreads / kLanes; ++w) sum +=", "w < kThreads / kLanes - 1; ++w) sum +="),
    ("a row's largest: an exchange", MATHS, "step > 0; step /= 2) x = fmaxf", "step > 1; step /= 2) x = fmaxf"),
    ("packs where rows do not allow them", MATHS, "bool lies = size % kMost == 0;", "bool lies = true;"),
    ("norm: eps", NORM, "sqrtf(mean + in.eps)", "sqrtf(mean)"),
    ("norm: the weight from one", NORM, "from_one ? weight + 1 : weight", "weight"),
    ("norm: the row", NORM, "begin = row * in.size, first = int64_t{thread.index()} * kPack;\n  float squares", "begin = 0, first = int64_t{thread.index()} * kPack;\n  float squares"),
    ("norm: what goes along the row", NORM, "- x.of[i] * inverse * mean)", "- x.of[i] * mean)"),
    ("norm: the stride of a row", NORM, "at += kThreads * kPack) {\n    const auto x = gpu::wide<kPack>(in.x + begin + at);\n    for", "at += 2 * kThreads * kPack) {\n    const auto x = gpu::wide<kPack>(in.x + begin + at);\n    for"),
    ("norm: rows of a slice", NORM, "row += in.slices", "row += 1"),
    ("norm: the slice of a sum", NORM, "in.of_weight + slice * in.size", "in.of_weight"),
    ("gates: the last thread", GATED, "if (at >= in.count) return;\n  gpu::Pack<float, kPack> gate", "gpu::Pack<float, kPack> gate"),
    ("gates: the slope of SiLU", GATED, "share * (1 + x * (1 - share))", "share * (1 + x * share)"),
    ("gates: the slope of GELU", GATED, "x * kDensity * expf", "kDensity * expf"),
    ("gates: the slope of tanh", GATED, "(1 + 3 * kCubic * x * x)", "(1 + kCubic * x * x)"),
    ("gates: gradients change places", GATED, "static_cast<Result*>(in.of_up) + at", "static_cast<Result*>(in.of_gate) + at"),
    ("turns: the way back", TURN, "in.back ? -1.0f : 1.0f", "1.0f"),
    ("turns: the token's row", TURN, "in.turns + token * in.dims", "in.turns"),
    ("turns: the sines", TURN, "wide<kPack>(cosines + half + at)", "wide<kPack>(cosines + at)"),
    ("turns: what stays", TURN, "pairs + (in.head_dim - in.dims) / kPack", "pairs"),
    ("turns: the head", TURN, "piece / pieces * in.head_dim", "0"),
    ("logits: the temperature", LOGITS, "return {logit * by.inverse_temperature, by.inverse_temperature};", "return {logit * by.inverse_temperature, 1};"),
    ("logits: the cap's slope", LOGITS, "(1 - bend * bend) * by", "(1 - bend) * by"),
    ("logits: what was weighted moves too", LOGITS, "weighted = kept * (weighted + shift * sum);", "weighted = kept * weighted;"),
    ("logits: what is far below", LOGITS, "if (top > mine.largest) mine.move_to(top);", "mine.largest = top;"),
    ("logits: a meeting", LOGITS, "  thread.meet();\n", ""),
    ("logits: warps move too", LOGITS, "shared.weighted[w] + shift * shared.sums[w]", "shared.weighted[w]"),
    ("logits: the target", LOGITS, "if (at + i == target)", "if (at == target)"),
    ("logits: the entropy's slope", LOGITS, "(log_share + entropy)", "log_share"),
    ("steps: the scale", FLAT, "gradient.of[i] * in.gradient_scale", "gradient.of[i]"),
    ("steps: what is cleared", FLAT, "gradient.of[i] = 0;", ""),
    ("steps: the last thread", FLAT, "  if (at >= in.count) return;\n", ""),
    ("squares: a meeting", FLAT, "    thread.meet();\n", ""),
    ("squares: the last block", FLAT, "in.count - begin < kSquaresOfABlock ? in.count : begin + kSquaresOfABlock", "begin + kSquaresOfABlock"),
    ("squares: blocks of the total", FLAT, "part < parts; part += kThreads", "part < parts - 1; part += kThreads"),
]


def tests_of(kernel):
    return ("paged_decode_kernel_test.cpp",) if kernel == PAGED else ("training_kernels_test.cpp", "host_training_kernels.cpp")


def passes(kernel, text, folder):
    """Whether the test passes with this text of the kernel."""
    (folder / kernel).parent.mkdir(parents=True, exist_ok=True)
    (folder / kernel).write_text(text)
    torch, program = torch_folder(), folder / "test"
    sources = HOST + tuple(TESTS + name for name in tests_of(kernel))
    headers = [f"-I{folder}", f"-I{ROOT}", f"-isystem{torch}/include"]
    libraries = ["-lgtest", "-lgtest_main", "-lpthread", f"-L{torch}/lib", "-lc10", f"-Wl,-rpath,{torch.resolve()}/lib"]
    subprocess.run(["c++", "-std=c++20", "-O1", *headers, *(ROOT / source for source in sources), "-o", program, *libraries], check=True)
    return subprocess.run([program], capture_output=True).returncode == 0


def is_found(kernel, text):
    with tempfile.TemporaryDirectory() as folder:
        return not passes(kernel, text, pathlib.Path(folder))


def main():
    chosen = mutating.chosen(MUTATIONS)
    for kernel in sorted({kernel for _, kernel, _, _ in chosen}):
        if is_found(kernel, (ROOT / kernel).read_text()):
            raise SystemExit(f"{kernel} as it is fails")
    return mutating.report((name, is_found(kernel, mutating.spoilt(name, kernel, (ROOT / kernel).read_text(), there, instead)))
                           for name, kernel, there, instead in chosen)


if __name__ == "__main__":
    raise SystemExit(main())
