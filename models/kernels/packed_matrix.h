#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "models/config/precision.h"
#include "models/kernels/bfloat16.h"
#include "models/kernels/instruction_set.h"

namespace sluice::models {

/// The matrix of a linear layer, [outputs, inputs], laid out in the order in which multiply() reads it: panels of 32 outputs,
/// each input by input (in bfloat16: pair of inputs by pair of inputs). A copy of the weight it was made of: who changes the
/// weight packs again. Owns its memory, a tensor's.
///
/// Or rows that stay quantised (quantised_rows.h), whose memory it shares: multiply() then makes a panel at a time of them, and
/// gives the bits of a matrix that they were put into.
///
/// Not thread-safe while it is written; multiply() may read it from several threads.
class PackedMatrix {
 public:
  static constexpr int64_t kWidth = 32;  // outputs of a panel; missing ones in the last panel are zero

  PackedMatrix() = default;

  /// What a matrix takes.
  static int64_t bytes_for(Precision precision, int64_t outputs, int64_t inputs);

  /// All zero.
  PackedMatrix(Precision precision, int64_t outputs, int64_t inputs);

  /// Of quantised matrices that read the same input, their outputs one after the other. Nothing can be put there.
  PackedMatrix(Precision precision, std::vector<at::Tensor> quantised);

  /// Outputs [first, first + count) become weight[count, inputs], rows `stride` apart. Any `first`: several weights that read the
  /// same input can be one matrix. Split over ATen's threads.
  void put(int64_t first, int64_t count, const float* weight, int64_t stride);
  void put(int64_t first, int64_t count, const Bfloat16* weight, int64_t stride);

  /// Likewise of weight[count, inputs] on the CPU, rows side by side: float32, quantised, or in a matrix of bfloat16 rounded
  /// already.
  void put(int64_t first, const at::Tensor& weight);

  /// The whole matrix becomes the transpose of weight[inputs, outputs], rows `stride` apart: for gradients of inputs.
  void put_transposed(const float* weight, int64_t stride);
  void put_transposed(const Bfloat16* weight, int64_t stride);  // into a matrix of bfloat16
  void put_transposed_quantised(const at::Tensor& weight);

  /// Outputs [first, first + count) of this one, which share its memory: `first` begins a panel. Not of one that stays quantised.
  PackedMatrix part(int64_t first, int64_t count) const;

  /// to[inputs] becomes what was put at this output, as the precision holds it: the bits of a float32 matrix. For rows that are
  /// looked up, which a table and a head share.
  void row(int64_t output, float* to) const;

  /// Its memory, for who gives it another place; what is put there is of the same size.
  at::Tensor& memory() { return data_; }

  Precision precision() const { return precision_; }
  int64_t outputs() const { return outputs_; }
  int64_t inputs() const { return inputs_; }
  bool empty() const { return outputs_ == 0; }

  /// Of its own, and of the quantised rows that it shares.
  int64_t bytes() const { return data_.defined() ? static_cast<int64_t>(data_.nbytes()) : 0; }
  int64_t shared_bytes() const;

  /// What stays quantised, or nothing.
  const std::vector<at::Tensor>& quantised() const { return quantised_; }
  bool is_quantised() const { return !quantised_.empty(); }

  /// Panel `index`: float [inputs, 32], or Bfloat16 [ceil(inputs / 2), 32, 2] with a zero after an odd last input. Not of one
  /// that stays quantised.
  const void* panel(int64_t index) const { return static_cast<const char*>(data_.const_data_ptr()) + index * panel_bytes_; }

 private:
  void put_quantised(int64_t first, const at::Tensor& weight);

  Precision precision_ = Precision::kFloat32;
  int64_t outputs_ = 0, inputs_ = 0;
  int64_t panel_bytes_ = 0;
  at::Tensor data_;
  std::vector<at::Tensor> quantised_;
};

/// out[row, :] (+)= x[row, :] matrix^T + bias.
struct ProductArguments {
  const void* x = nullptr;  // [rows, inputs] of the matrix's precision, row stride x_stride
  int64_t x_stride = 0;     // elements
  int64_t rows = 0;
  const float* bias = nullptr;     // [outputs], or null
  float* out = nullptr;            // [rows, outputs], row stride out_stride; must not overlap x
  Bfloat16* narrow_out = nullptr;  // the other place for the result, rounded once; then `out` is null and nothing accumulates
  int64_t out_stride = 0;          // elements
  bool accumulate = false;         // add to what is in `out`: the residual connection
};

/// Sums in float32. Every element is one chain of multiply-adds (of sums of two products where the machine has an instruction for
/// these in bfloat16) in the order of the inputs that starts from the bias, whatever the other rows and the number of threads
/// are: a row's result is bit-identical in every batch, which no library's matrix product promises. Allocates nothing, but once a
/// thread room for a panel of what stays quantised and for a block of rows that are widened or lie badly. `set` is for tests of
/// what runs elsewhere; it must not be better than best_instruction_set().
void multiply(const PackedMatrix& matrix, const ProductArguments& arguments, InstructionSet set = best_instruction_set());

}  // namespace sluice::models
