#include "models/kernels/packed_matrix.h"

#include <ATen/ops/zeros.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kMinTaskWork = 1 << 17;    // multiply-adds that a thread is worth waking for
constexpr int64_t kBlockBytes = 384 * 1024;  // of x: with a panel, less than the second-level cache
constexpr int64_t kPackGrain = 1 << 15;      // weights that a thread is worth waking for

constexpr int64_t kWordBytes = 4;  // a word of a panel: a float, or a pair of bfloat16

int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t panel_words(Precision precision, int64_t inputs) {
  return PackedMatrix::kWidth * (precision == Precision::kFloat32 ? inputs : ceil_divide(inputs, 2));
}

/// A block of a product: what one call of a kernel computes.
struct Part {
  int64_t panel_begin, panel_end, row_begin, row_end;
};

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/kernels/packed_matrix.inc"
#include "models/kernels/every_instruction_set.inc"

// Outputs of a weight go to their places in a panel; see the kernels.
struct PackingKernels {
  void (*floats)(const float* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  void (*narrowed)(const float* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  void (*bfloat16)(const Bfloat16* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  int64_t lanes;
};

PackingKernels packing_kernels() {
  return with_kernels(best_instruction_set(), [](auto kernels) {
    return PackingKernels{kernels.pack_floats, kernels.pack_narrowed, kernels.pack_bfloat16, kernels.lanes};
  });
}

/// Rows whose distance is a multiple of a page fall into the same sets of the first-level cache, and a tile's rows push each
/// other out: they are read from a copy with other distances.
class SpacedRows {
 public:
  static bool needed(int64_t rows, int64_t stride_bytes) { return rows >= 8 && stride_bytes % 2048 == 0; }

  /// Points `a` at a copy of its rows [begin, end) of `row_bytes` bytes each, valid until the next call on this thread.
  static ProductArguments copy(const ProductArguments& a, int64_t begin, int64_t end, int64_t row_bytes, int64_t element) {
    constexpr int64_t kLine = 64;
    thread_local std::vector<char> memory;  // grows to the largest block, of some hundred kilobytes
    const int64_t stride = ceil_divide(row_bytes, kLine) * kLine + kLine;
    memory.resize(std::max(memory.size(), static_cast<size_t>((end - begin) * stride)));
    for (int64_t row = begin; row < end; ++row)
      std::memcpy(memory.data() + (row - begin) * stride, static_cast<const char*>(a.x) + row * a.x_stride * element, row_bytes);
    ProductArguments spaced = a;
    spaced.x = memory.data() - begin * stride;
    spaced.x_stride = stride / element;
    return spaced;
  }
};

// Calls `work(from, count, to)` for runs of outputs that lie side by side in one panel: `from` counts from the first of
// [first, first + count), `to` is the place of the run's first output.
template <class Work>
void for_each_run(int64_t first, int64_t count, int64_t inputs, int64_t lanes, char* data, int64_t panel_bytes,
                  const Work& work) {
  const int64_t begin = first / lanes, end = ceil_divide(first + count, lanes);
  parallel_ranges(end - begin, kPackGrain / (inputs * lanes) + 1, [&](int64_t run_begin, int64_t run_end) {
    for (int64_t run = begin + run_begin; run < begin + run_end; ++run) {
      const int64_t output = std::max(first, run * lanes), last = std::min(first + count, (run + 1) * lanes);
      auto* panel = reinterpret_cast<int32_t*>(data + output / PackedMatrix::kWidth * panel_bytes);
      work(output - first, last - output, panel + output % PackedMatrix::kWidth);
    }
  });
}

}  // namespace

int64_t PackedMatrix::bytes_for(Precision precision, int64_t outputs, int64_t inputs) {
  return ceil_divide(outputs, kWidth) * panel_words(precision, inputs) * kWordBytes;
}

PackedMatrix::PackedMatrix(Precision precision, int64_t outputs, int64_t inputs)
    : precision_(precision), outputs_(outputs), inputs_(inputs) {
  SLUICE_CHECK(outputs > 0 && inputs > 0, "a packed matrix has outputs and inputs");
  panel_bytes_ = panel_words(precision, inputs) * kWordBytes;
  data_ = at::zeros({bytes_for(precision, outputs, inputs) / kWordBytes}, at::kInt);
}

void PackedMatrix::put(int64_t first, int64_t count, const float* weight, int64_t stride) {
  SLUICE_CHECK(first >= 0 && count >= 0 && first + count <= outputs_, "outputs outside a packed matrix");
  const PackingKernels kernels = packing_kernels();
  const auto pack = precision_ == Precision::kFloat32 ? kernels.floats : kernels.narrowed;
  for_each_run(first, count, inputs_, kernels.lanes, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
               [&](int64_t from, int64_t run, int32_t* to) { pack(weight + from * stride, stride, run, inputs_, to); });
}

void PackedMatrix::put(int64_t first, int64_t count, const Bfloat16* weight, int64_t stride) {
  SLUICE_CHECK(first >= 0 && count >= 0 && first + count <= outputs_, "outputs outside a packed matrix");
  SLUICE_CHECK(precision_ == Precision::kBfloat16, "bfloat16 is put into a matrix of bfloat16");
  const PackingKernels kernels = packing_kernels();
  for_each_run(
      first, count, inputs_, kernels.lanes, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
      [&](int64_t from, int64_t run, int32_t* to) { kernels.bfloat16(weight + from * stride, stride, run, inputs_, to); });
}

void PackedMatrix::put(int64_t first, const at::Tensor& weight) {
  SLUICE_CHECK(weight.is_cpu() && weight.dim() == 2 && weight.size(1) == inputs_ && (inputs_ == 1 || weight.stride(1) == 1),
               "a weight is rows side by side on the CPU");
  if (weight.scalar_type() == at::kBFloat16)
    return put(first, weight.size(0), static_cast<const Bfloat16*>(weight.const_data_ptr()), weight.stride(0));
  put(first, weight.size(0), weight.const_data_ptr<float>(), weight.stride(0));
}

void PackedMatrix::put_transposed(const float* weight, int64_t stride) {
  const bool rounds = precision_ != Precision::kFloat32;
  const auto pack = with_kernels(best_instruction_set(),
                                 [&](auto kernels) { return rounds ? kernels.transpose_narrowed : kernels.transpose_floats; });
  for_each_run(0, outputs_, inputs_, kWidth, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
               [&](int64_t from, int64_t run, int32_t* to) { pack(weight + from, stride, run, inputs_, to); });
}

void PackedMatrix::put_transposed(const Bfloat16* weight, int64_t stride) {
  SLUICE_CHECK(precision_ == Precision::kBfloat16, "bfloat16 is put into a matrix of bfloat16");
  const auto pack = with_kernels(best_instruction_set(), [](auto kernels) { return kernels.transpose_bfloat16; });
  for_each_run(0, outputs_, inputs_, kWidth, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
               [&](int64_t from, int64_t run, int32_t* to) { pack(weight + from, stride, run, inputs_, to); });
}

PackedMatrix PackedMatrix::part(int64_t first, int64_t count) const {
  SLUICE_CHECK(first >= 0 && first % kWidth == 0 && count > 0 && first + count <= outputs_, "outputs outside a packed matrix");
  const int64_t words = panel_bytes_ / kWordBytes;
  PackedMatrix some = *this;
  some.outputs_ = count;
  some.data_ = data_.narrow(0, first / kWidth * words, ceil_divide(count, kWidth) * words);
  return some;
}

void PackedMatrix::row(int64_t output, float* to) const {
  SLUICE_CHECK(output >= 0 && output < outputs_, "a row outside a packed matrix");
  const void* const words = panel(output / kWidth);
  const int64_t place = output % kWidth;
  if (precision_ == Precision::kFloat32) {
    const float* from = static_cast<const float*>(words) + place;
    for (int64_t i = 0; i < inputs_; ++i) to[i] = from[i * kWidth];
    return;
  }
  const Bfloat16* from = static_cast<const Bfloat16*>(words) + 2 * place;
  for (int64_t i = 0; i < inputs_; ++i) to[i] = to_float(from[i / 2 * 2 * kWidth + i % 2]);
}

namespace {

using Kernel = void (*)(const PackedMatrix& matrix, const ProductArguments& arguments, const Part& part);

void multiply_part(Kernel kernel, const PackedMatrix& matrix, const ProductArguments& a, const Part& part) {
  const int64_t element = bytes_of(matrix.precision());
  if (!SpacedRows::needed(part.row_end - part.row_begin, a.x_stride * element)) return kernel(matrix, a, part);
  kernel(matrix, SpacedRows::copy(a, part.row_begin, part.row_end, matrix.inputs() * element, element), part);
}

}  // namespace

void multiply(const PackedMatrix& matrix, const ProductArguments& a, InstructionSet set) {
  if (a.rows == 0) return;
  SLUICE_CHECK((a.out == nullptr) != (a.narrow_out == nullptr), "a product has one place to go to");
  SLUICE_CHECK(a.out != nullptr || !a.accumulate, "only a float32 result accumulates");
  const bool rounds = matrix.precision() != Precision::kFloat32;
  const Kernel kernel =
      with_kernels(set, [&](auto kernels) { return rounds ? kernels.multiply_bfloat16 : kernels.multiply_floats; });
  const int64_t panels = ceil_divide(matrix.outputs(), PackedMatrix::kWidth);
  constexpr int64_t kTile = 12;  // rows; a block has whole tiles
  const int64_t row_bytes = matrix.inputs() * bytes_of(matrix.precision());
  const int64_t block = std::max<int64_t>(1, kBlockBytes / (kTile * row_bytes)) * kTile;
  const int64_t threads = loop_threads();
  if (a.rows >= 2 * threads * block || (a.rows >= threads * block && panels < 2 * threads)) {
    const int64_t blocks = ceil_divide(a.rows, block);
    parallel_ranges(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        multiply_part(kernel, matrix, a, {0, panels, i * block, std::min((i + 1) * block, a.rows)});
    });
    return;
  }
  const int64_t grain = ceil_divide(kMinTaskWork, a.rows * matrix.inputs() * PackedMatrix::kWidth);
  parallel_ranges(panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < a.rows; row += block)
      multiply_part(kernel, matrix, a, {begin, end, row, std::min(row + block, a.rows)});
  });
}

}  // namespace sluice::models
