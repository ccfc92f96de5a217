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
HOST = (TESTS + "host_block.cpp", "base/numbers/random.cpp")
PAGED, GROUPED, SKINNY, ROWS, DRAWING, NORM, GATED, ROTARY, LOGITS, FLAT = (
    CUDA + f"{name}_kernel{'s' if name == 'row' else ''}.h"
    for name in ("paged_decode", "grouped_decode", "skinny_product",
                 "row", "drawing", "rms_norm", "gated", "rotary", "logit_rows", "flat_step"))
MATHS, THREAD = CUDA + "thread_maths.h", CUDA + "gpu_thread.h"
# The tests of each file that is spoilt.
TESTS_OF = {PAGED: "paged_decode_kernel_test.cpp", GROUPED: "paged_decode_kernel_test.cpp", SKINNY: "skinny_product_test.cpp",
            ROWS: "row_kernels_test.cpp", DRAWING: "drawing_kernel_test.cpp", THREAD: "row_kernels_test.cpp"}
# Name; file; what is there; what takes its place.
OF_GENERATION = [
    ("paged: the key head of a query head", PAGED, "kv_head = of_heads / parts;", "kv_head = of_heads % parts;"),
    ("paged: the row of a table", PAGED, "static_cast<int64_t>(place.sequence) * in.table_width",
     "static_cast<int64_t>(place.sequence)"),
    ("paged: the place in a block", PAGED, "+ token - static_cast<int64_t>(whole) * in.block_size", "+ token"),
    ("paged: the row of a key", PAGED, "(slot * in.kv_heads + place.kv_head) * in.head_dim",
     "(slot * in.heads + place.kv_head) * in.head_dim"),
    ("paged: a window that is one longer", PAGED, "? length - in.window : 0;", "? length - in.window - 1 : 0;"),
    ("paged: where a part begins", PAGED, "begin = first + split * each;", "begin = split * each;"),
    ("paged: the last token", PAGED, "end = begin + each < length ? begin + each : length;", "end = begin + each;"),
    ("paged: the stride of warps", PAGED, "token += kWarps * kOfWarp", "token += (kWarps + 1) * kOfWarp"),
    ("paged: an exchange", PAGED, "gpu::sum_of_lanes(thread, score, S::kGroup)",
     "gpu::sum_of_lanes(thread, score, S::kGroup / 2)"),
    ("paged: what was seen shrinks", PAGED, "largest = top, sum *= share;", "largest = top;"),
    ("paged: the meeting of a block", PAGED, "  thread.meet();\n\n  put_together", "  put_together"),
    ("paged: parts meet", PAGED, "  sum = gpu::sum_of_lanes(thread, sum);\n  thread.meet();",
     "  sum = gpu::sum_of_lanes(thread, sum);"),
    ("paged: the last parts", PAGED, "part += 4) {", "part += 5) {"),
    ("paged: the soft cap", PAGED, "in.softcap * tanhf(score / in.softcap)", "tanhf(score / in.softcap)"),
    ("grouped: the token of a value", GROUPED, "2 * column + v % 2 + v / 2 * 8", "4 * column + v"),
    ("grouped: a value that nobody sees", GROUPED, "seen ? gpu::load_words(value + c * 64) : Words{}",
     "gpu::load_words(value + c * 64)"),
    ("grouped: dimensions of keys", GROUPED, "b[2] = {of.keys[n][c].of[k], of.keys[n][c].of[k + 1]}",
     "b[2] = {of.keys[n][c].of[k + 1], of.keys[n][c].of[k]}"),
    ("grouped: the largest score", GROUPED, "for (int step = 1; step < 4; step *= 2) top",
     "for (int step = 1; step < 2; step *= 2) top"),
    ("grouped: halves of words", GROUPED, "gpu::upper_halves(word(2), word(3))", "gpu::lower_halves(word(2), word(3))"),
    ("grouped: the dimension of a sum", GROUPED, "(2 * place.column + j) * 8", "(place.column + 4 * j) * 8"),
    ("grouped: the first tile", GROUPED, "begin = first_tile + split * each;", "begin = split * each;"),
    ("grouped: the sum of lanes", GROUPED, "step *= 2) seen.sum += thread", "step *= 4) seen.sum += thread"),
    ("product: the warps' inputs", SKINNY, "input += kUnrolled * kApart", "input += kApart"),
    ("product: after the last input", SKINNY, "row < from.rows && input < from.inputs", "row < from.rows"),
    ("product: the meeting", SKINNY, "  thread.meet();\n}", "}"),
    ("product: the lower rows", SKINNY, "lane / 4 + (c < 2 ? 0 : 8)", "lane / 4 + (c < 2 ? 8 : 0)"),
    ("product: a warp is left out", SKINNY, "for (int w = 0; w < kWarps; ++w) sum += shared.sums[w][row][place];",
     "for (int w = 1; w < kWarps; ++w) sum += shared.sums[w][row][place];"),
    ("product: the gate's bias", SKINNY, "biased(place, gate.gate_bias)", "biased(place, gate.up_bias)"),
    ("rows: eps", ROWS, "static_cast<float>(in.size) + in.eps", "static_cast<float>(in.size)"),
    ("rows: the norm of what is added", ROWS, "factor_of(thread, more.squares(), in, shared.sums[0])",
     "factor_of(thread, x.squares(), in, shared.sums[0])"),
    ("rows: the weights from one", ROWS, "from_one ? weights.of[i] + 1.0f : weights.of[i]", "weights.of[i]"),
    ("rows: chosen ones", ROWS, "in.chosen != nullptr ? in.chosen[row] : row", "row"),
    ("rows: the sines", ROWS, "* angles[half + pair]", "* angles[pair]"),
    ("rows: what is not rotated", ROWS, "d < in.rotary_dims) {", "d < in.head_dim) {"),
    ("rows: neighbours", ROWS, "in.neighbours ? d / 2", "in.neighbours ? d"),
    ("rows: values are not rotated", ROWS, "nullptr, nullptr, nullptr, of_values < 0}", "nullptr, nullptr, nullptr, true}"),
    ("draws: the first of equal logits", DRAWING, "b.logit == a.logit && b.id < a.id", "b.logit == a.logit && b.id > a.id"),
    ("draws: the end of the vocabulary", DRAWING, "id < in.vocabulary ? expf", "true ? expf"),
    ("draws: what lies before a run", DRAWING, "shared.before = found.before;", "shared.before = 0;"),
    ("draws: a place without weight", DRAWING, "if (here > 0) last = {i, before};", "last = {i, before};"),
    ("draws: all are finite", DRAWING, "a.finite & b.finite", "b.finite"),
    ("threads: where an exchange begins", THREAD, "int step = lanes / 2; step > 0", "int step = lanes / 4; step > 0"),
]
# Name; file; what is there; what takes its place.
MUTATIONS = OF_GENERATION + [
    ("a block's sum: a meeting", MATHS, "  thread.meet();\n  float sum = 0;", "  float sum = 0;"),
    ("a block's sum: a warp is left out", MATHS, "w < kThreads / kLanes; ++w) sum +=", "w < kThreads / kLanes - 1; ++w) sum +="),
    ("a row's largest: an exchange", MATHS, "step > 0; step /= 2) x = fmaxf", "step > 1; step /= 2) x = fmaxf"),
    ("packs where rows do not allow them", MATHS, "bool lies = size % kMost == 0;", "bool lies = true;"),
    ("norm: eps", NORM, "sqrtf(mean + in.eps)", "sqrtf(mean)"),
    ("norm: the weight from one", NORM, "from_one ? weight + 1 : weight", "weight"),
    ("norm: the row", NORM, "begin = row * in.size, first = int64_t{thread.index()} * kPack;\n  float squares",
     "begin = 0, first = int64_t{thread.index()} * kPack;\n  float squares"),
    ("norm: what goes along the row", NORM, "- x.of[i] * inverse * mean)", "- x.of[i] * mean)"),
    ("norm: the stride of a row", NORM, "at += kThreads * kPack) {\n    const auto x = gpu::wide<kPack>(in.x + begin + at);\n"
     "    for", "at += 2 * kThreads * kPack) {\n    const auto x = gpu::wide<kPack>(in.x + begin + at);\n    for"),
    ("norm: rows of a slice", NORM, "row += in.slices", "row += 1"),
    ("norm: the slice of a sum", NORM, "in.of_weight + slice * in.size", "in.of_weight"),
    ("gates: the last thread", GATED, "if (at >= in.count) return;\n  gpu::Pack<float, kPack> gate",
     "gpu::Pack<float, kPack> gate"),
    ("gates: the slope of SiLU", GATED, "share * (1 + x * (1 - share))", "share * (1 + x * share)"),
    ("gates: the slope of GELU", GATED, "x * kDensity * expf", "kDensity * expf"),
    ("gates: the slope of tanh", GATED, "(1 + 3 * kCubic * x * x)", "(1 + kCubic * x * x)"),
    ("gates: gradients change places", GATED, "static_cast<Result*>(in.of_up) + at", "static_cast<Result*>(in.of_gate) + at"),
    ("rotary: the way back", ROTARY, "in.back ? -1.0f : 1.0f", "1.0f"),
    ("rotary: the token's row", ROTARY, "in.angles + token * in.dims", "in.angles"),
    ("rotary: the sines", ROTARY, "wide<kPack>(cosines + half + at)", "wide<kPack>(cosines + at)"),
    ("rotary: what stays", ROTARY, "pairs + (in.head_dim - in.dims) / kPack", "pairs"),
    ("rotary: the head", ROTARY, "piece / pieces * in.head_dim", "0"),
    ("logits: the temperature", LOGITS, "return {logit * by.inverse_temperature, by.inverse_temperature};",
     "return {logit * by.inverse_temperature, 1};"),
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
    ("squares: the last block", FLAT, "in.count - begin < kSquaresOfABlock ? in.count : begin + kSquaresOfABlock",
     "begin + kSquaresOfABlock"),
    ("squares: blocks of the total", FLAT, "part < parts; part += kThreads", "part < parts - 1; part += kThreads"),
]


def tests_of(kernel):
    return (TESTS_OF[kernel],) if kernel in TESTS_OF else ("training_kernels_test.cpp", "host_training_kernels.cpp")


def passes(kernel, text, folder):
    """Whether the test passes with this text of the kernel."""
    (folder / kernel).parent.mkdir(parents=True, exist_ok=True)
    (folder / kernel).write_text(text)
    torch, program = torch_folder(), folder / "test"
    sources = HOST + tuple(TESTS + name for name in tests_of(kernel))
    headers = [f"-I{folder}", f"-I{ROOT}", f"-isystem{torch}/include"]
    libraries = ["-lgtest", "-lgtest_main", "-lpthread", f"-L{torch}/lib", "-lc10", f"-Wl,-rpath,{torch.resolve()}/lib"]
    subprocess.run(["c++", "-std=c++20", "-O1", *headers, *(ROOT / source for source in sources), "-o", program, *libraries],
                   check=True)
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
