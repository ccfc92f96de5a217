#include "models/kernels/packed_matrix.h"

#include <ATen/ops/zeros.h>
#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/kernels/quantised_rows.h"

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

/// A matrix as a product reads it, or some of its panels.
struct Panels {
  const char* data;  // of panel `first`
  int64_t panel_bytes;
  int64_t first;
  int64_t outputs, inputs;  // of the matrix
  Precision precision;

  const void* panel(int64_t index) const { return data + (index - first) * panel_bytes; }
};

/// One value of a row, as all kernels have it.
float value_of(const QuantisedLayout& layout, const uint8_t* row, int64_t input) {
  const QuantisedRow of(layout, row);
  const int64_t group = input / layout.options.group;
  const int code = layout.options.kind == Quantisation::kInt4 ? of.codes[input / 2] >> 4 * (input % 2) & 15
                                                              : static_cast<int8_t>(of.codes[input]);
  return (static_cast<float>(code) - of.zero(group)) * of.scales[group];
}

struct Range {
  int64_t begin, end;
};

/// A block of a product: what one call of a kernel computes.
struct Part {
  int64_t panel_begin, panel_end, row_begin, row_end;
};

using WidenRow = void (*)(const Bfloat16* from, int64_t count, float* to);

#define SLUICE_KERNELS_MULTIPLY_BFLOAT16
#define SLUICE_KERNELS "models/kernels/packed_matrix.inc"
#include "models/kernels/every_instruction_set.inc"

// Outputs of a weight go to their places in a panel; see the kernels.
struct PackingKernels {
  using OfQuantised = void (*)(const QuantisedLayout& layout, const uint8_t* rows, int64_t stride, int64_t outputs, int32_t* to);

  // Of float32, and of quantised rows, into a matrix of the precision.
  auto of(Precision precision) const { return precision == Precision::kFloat32 ? floats : narrowed; }
  auto of_quantised(Precision precision) const {
    return precision == Precision::kFloat32 ? quantised_floats : quantised_narrowed;
  }

  void (*floats)(const float* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  void (*narrowed)(const float* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  void (*bfloat16)(const Bfloat16* weight, int64_t stride, int64_t outputs, int64_t inputs, int32_t* to);
  OfQuantised quantised_floats, quantised_narrowed;
  int64_t lanes;
};

PackingKernels packing_kernels(InstructionSet set = best_instruction_set()) {
  return with_kernels(set, [](auto kernels) {
    return PackingKernels{kernels.pack_floats,           kernels.pack_narrowed,           kernels.pack_bfloat16,
                          kernels.pack_quantised_floats, kernels.pack_quantised_narrowed, kernels.lanes};
  });
}

// Of float32, into a matrix of the precision.
auto transposing_kernel(Precision precision) {
  return with_kernels(best_instruction_set(), [&](auto kernels) {
    return precision == Precision::kFloat32 ? kernels.transpose_floats : kernels.transpose_narrowed;
  });
}

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

/// A panel of rows that stay quantised, those of several matrices one after the other.
class DequantisedPanel {
 public:
  DequantisedPanel(const PackedMatrix& matrix, InstructionSet set)
      : matrix_(matrix), layout_(layout_of(matrix.quantised().front())), packing_(packing_kernels(set)) {}

  /// Valid until the next call on this thread.
  Panels at(int64_t index) {
    const int64_t words = panel_words(matrix_.precision(), matrix_.inputs());
    int32_t* const panel = memory_for(words);
    const int64_t begin = index * PackedMatrix::kWidth, end = std::min(begin + PackedMatrix::kWidth, matrix_.outputs());
    if (end - begin < PackedMatrix::kWidth) std::fill_n(panel, words, 0);
    int64_t first = 0;  // output of a part
    for (const at::Tensor& part : matrix_.quantised()) {
      const int64_t from = std::max(begin, first), to = std::min(end, first + part.size(0)), stride = part.stride(0);
      const auto* rows = part.const_data_ptr<uint8_t>();
      if (from < to) fill(rows + (from - first) * stride, stride, to - from, panel + (from - begin));
      first += part.size(0);
    }
    return {.data = reinterpret_cast<const char*>(panel),
            .panel_bytes = words * kWordBytes,
            .first = index,
            .outputs = matrix_.outputs(),
            .inputs = matrix_.inputs(),
            .precision = matrix_.precision()};
  }

 private:
  // On a cache line.
  static int32_t* memory_for(int64_t words) {
    constexpr size_t kLine = 16;               // words
    thread_local std::vector<int32_t> memory;  // grows to the largest panel, of at most some megabytes
    memory.resize(std::max(memory.size(), static_cast<size_t>(words) + kLine));
    const auto past = reinterpret_cast<uintptr_t>(memory.data()) / sizeof(int32_t) % kLine;
    return memory.data() + (kLine - past) % kLine;
  }

  void fill(const uint8_t* rows, int64_t stride, int64_t count, int32_t* to) {
    const auto pack = packing_.of_quantised(matrix_.precision());
    for (int64_t row = 0; row < count; row += packing_.lanes)
      pack(layout_, rows + row * stride, stride, std::min(packing_.lanes, count - row), to + row);
  }

  const PackedMatrix& matrix_;
  const QuantisedLayout layout_;
  const PackingKernels packing_;
};

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

PackedMatrix::PackedMatrix(Precision precision, std::vector<at::Tensor> quantised)
    : precision_(precision), quantised_(std::move(quantised)) {
  SLUICE_CHECK(!quantised_.empty(), "a packed matrix has outputs and inputs");
  const QuantisedLayout layout = layout_of(quantised_.front());
  inputs_ = layout.inputs;
  for (const at::Tensor& rows : quantised_) {
    SLUICE_CHECK(layout_of(rows) == layout && rows.stride(1) == 1, "quantised matrices of one layout are one matrix");
    outputs_ += rows.size(0);
  }
}

int64_t PackedMatrix::shared_bytes() const {
  int64_t bytes = 0;
  for (const at::Tensor& rows : quantised_) bytes += static_cast<int64_t>(rows.nbytes());
  return bytes;
}

void PackedMatrix::put(int64_t first, int64_t count, const float* weight, int64_t stride) {
  SLUICE_CHECK(first >= 0 && count >= 0 && first + count <= outputs_, "outputs outside a packed matrix");
  const PackingKernels kernels = packing_kernels();
  const auto pack = kernels.of(precision_);
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
  if (models::is_quantised(weight)) return put_quantised(first, weight);
  SLUICE_CHECK(weight.is_cpu() && weight.dim() == 2 && weight.size(1) == inputs_ && (inputs_ == 1 || weight.stride(1) == 1),
               "a weight is rows side by side on the CPU");
  if (weight.scalar_type() == at::kBFloat16)
    return put(first, weight.size(0), static_cast<const Bfloat16*>(weight.const_data_ptr()), weight.stride(0));
  put(first, weight.size(0), weight.const_data_ptr<float>(), weight.stride(0));
}

void PackedMatrix::put_quantised(int64_t first, const at::Tensor& weight) {
  const QuantisedLayout layout = layout_of(weight);
  SLUICE_CHECK(first >= 0 && first + weight.size(0) <= outputs_ && layout.inputs == inputs_, "outputs outside a packed matrix");
  const auto* rows = weight.const_data_ptr<uint8_t>();
  const PackingKernels kernels = packing_kernels();
  const auto pack = kernels.of_quantised(precision_);
  for_each_run(
      first, weight.size(0), inputs_, kernels.lanes, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
      [&](int64_t from, int64_t run, int32_t* to) { pack(layout, rows + from * weight.stride(0), weight.stride(0), run, to); });
}

// Of a matrix [inputs, outputs]: some of its rows at a time, the columns of a panel.
void PackedMatrix::put_transposed_quantised(const at::Tensor& weight) {
  constexpr int64_t kRows = 64;
  const QuantisedLayout layout = layout_of(weight);
  SLUICE_CHECK(layout.inputs == outputs_ && weight.size(0) == inputs_, "a transpose of another shape");
  const auto* rows = weight.const_data_ptr<uint8_t>();
  const auto pack = transposing_kernel(precision_);
  const DequantiseRow dequantise = dequantise_row();
  for_each_run(0, outputs_, inputs_, kWidth, static_cast<char*>(data_.mutable_data_ptr()), panel_bytes_,
               [&](int64_t from, int64_t run, int32_t* to) {
                 float values[kRows * kWidth];
                 for (int64_t first = 0; first < inputs_; first += kRows) {
                   const int64_t count = std::min(kRows, inputs_ - first);
                   for (int64_t row = 0; row < count; ++row)
                     dequantise(layout, rows + (first + row) * weight.stride(0), from, run, values + row * kWidth);
                   pack(values, kWidth, run, count, to + panel_words(precision_, first));
                 }
               });
}

void PackedMatrix::put_transposed(const float* weight, int64_t stride) {
  const auto pack = transposing_kernel(precision_);
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
  SLUICE_CHECK(!is_quantised() && first >= 0 && first % kWidth == 0 && count > 0 && first + count <= outputs_,
               "outputs outside a packed matrix");
  const int64_t words = panel_bytes_ / kWordBytes;
  PackedMatrix some = *this;
  some.outputs_ = count;
  some.data_ = data_.narrow(0, first / kWidth * words, ceil_divide(count, kWidth) * words);
  return some;
}

void PackedMatrix::row(int64_t output, float* to) const {
  SLUICE_CHECK(!is_quantised() && output >= 0 && output < outputs_, "a row outside a packed matrix");
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

/// What a product is computed with on a machine.
class Multiplication {
 public:
  Multiplication(Precision precision, int64_t inputs, InstructionSet set) : inputs_(inputs), element_(bytes_of(precision)) {
    const bool wide = precision == Precision::kFloat32;
    with_kernels(set, [&](auto kernels) {
      kernel_ = wide ? kernels.multiply_floats : kernels.multiply_bfloat16;
      widen_ = wide ? nullptr : kernels.widen;
    });
    element_read_ = widen_ != nullptr ? bytes_of(Precision::kFloat32) : element_;
  }

  /// Of a row as the kernel reads it.
  int64_t row_bytes() const { return inputs_ * element_read_; }

  void multiply(const Panels& matrix, const ProductArguments& a, const Part& part) const {
    kernel_(matrix, read(a, part.row_begin, part.row_end), part);
  }

  /// Likewise of rows that were read.
  void multiply_read(const Panels& matrix, const ProductArguments& a, const Part& part) const { kernel_(matrix, a, part); }

  /// Points `a` at its rows [begin, end) as the kernel reads them, valid until the next call on this thread: where they are, or a
  /// copy. Rows whose distance is a multiple of a page fall into the same sets of the first-level cache, and a tile's rows push
  /// each other out, so their copy has other distances.
  ProductArguments read(const ProductArguments& a, int64_t begin, int64_t end) const {
    const bool collide = end - begin >= 8 && a.x_stride * element_ % 2048 == 0;
    return widen_ == nullptr && !collide ? a : copy(a, begin, end);
  }

 private:
  ProductArguments copy(const ProductArguments& a, int64_t begin, int64_t end) const {
    constexpr int64_t kLine = 64;
    thread_local std::vector<char> memory;  // grows to the largest block, of some hundred kilobytes
    const int64_t stride = ceil_divide(row_bytes(), kLine) * kLine + kLine;
    memory.resize(std::max(memory.size(), static_cast<size_t>((end - begin) * stride)));
    for (int64_t row = begin; row < end; ++row) {
      char* const to = memory.data() + (row - begin) * stride;
      const char* const from = static_cast<const char*>(a.x) + row * a.x_stride * element_;
      if (widen_ != nullptr)
        widen_(reinterpret_cast<const Bfloat16*>(from), inputs_, reinterpret_cast<float*>(to));
      else
        std::memcpy(to, from, static_cast<size_t>(row_bytes()));
    }
    ProductArguments read = a;
    read.x = memory.data() - begin * stride;
    read.x_stride = stride / element_read_;
    return read;
  }

  int64_t inputs_, element_, element_read_;  // bytes of an element of x, and as the kernel reads it
  void (*kernel_)(const Panels& matrix, const ProductArguments& arguments, const Part& part) = nullptr;
  WidenRow widen_ = nullptr;  // null: as it is
};

// A panel at a time, with all rows or with a block of them after the other.
void multiply_quantised(const PackedMatrix& matrix, const Multiplication& with, const ProductArguments& a, int64_t block,
                        const Range& panels, InstructionSet set) {
  DequantisedPanel dequantised(matrix, set);
  const bool one_block = a.rows <= block;
  const ProductArguments read = one_block ? with.read(a, 0, a.rows) : a;
  for (int64_t panel = panels.begin; panel < panels.end; ++panel) {
    const Panels one = dequantised.at(panel);
    if (one_block) {
      with.multiply_read(one, read, {panel, panel + 1, 0, a.rows});
      continue;
    }
    for (int64_t row = 0; row < a.rows; row += block)
      with.multiply(one, a, {panel, panel + 1, row, std::min(row + block, a.rows)});
  }
}

}  // namespace

void multiply(const PackedMatrix& matrix, const ProductArguments& a, InstructionSet set) {
  if (a.rows == 0) return;
  SLUICE_CHECK((a.out == nullptr) != (a.narrow_out == nullptr), "a product has one place to go to");
  SLUICE_CHECK(a.out != nullptr || !a.accumulate, "only a float32 result accumulates");
  const Multiplication with(matrix.precision(), matrix.inputs(), set);
  const int64_t panels = ceil_divide(matrix.outputs(), PackedMatrix::kWidth);
  constexpr int64_t kTile = 12;  // rows; a block has whole tiles
  const int64_t block = std::max<int64_t>(1, kBlockBytes / (kTile * with.row_bytes())) * kTile;
  const int64_t threads = loop_threads();
  const int64_t grain = ceil_divide(kMinTaskWork, a.rows * matrix.inputs() * PackedMatrix::kWidth);
  if (matrix.is_quantised()) {
    parallel_ranges(panels, grain, [&](int64_t begin, int64_t end) {
      multiply_quantised(matrix, with, a, block, {begin, end}, set);
    });
    return;
  }
  const Panels all{.data = static_cast<const char*>(matrix.panel(0)),
                   .panel_bytes = panel_words(matrix.precision(), matrix.inputs()) * kWordBytes,
                   .first = 0,
                   .outputs = matrix.outputs(),
                   .inputs = matrix.inputs(),
                   .precision = matrix.precision()};
  if (a.rows >= 2 * threads * block || (a.rows >= threads * block && panels < 2 * threads)) {
    const int64_t blocks = ceil_divide(a.rows, block);
    parallel_ranges(blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) with.multiply(all, a, {0, panels, i * block, std::min((i + 1) * block, a.rows)});
    });
    return;
  }
  parallel_ranges(panels, grain, [&](int64_t begin, int64_t end) {
    for (int64_t row = 0; row < a.rows; row += block) with.multiply(all, a, {begin, end, row, std::min(row + block, a.rows)});
  });
}

}  // namespace sluice::models
