#include "models/layers/feed_forward/expert_rows.h"

#include <algorithm>

#include "base/error.h"
#include "models/kernels/parallel.h"
#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/projection.h"

namespace sluice::models {
namespace {

// Rows of an expert whose inner activations exist at a time, as an MLP has them.
constexpr int64_t kExpertForwardRows = 256, kExpertBackwardRows = 1024;
constexpr int64_t kScaledNumbers = 1 << 14;  // some 10 us of work

// What ExpertWork has: the projections of some rows, what the activation gives, the expert's result, and what it reads, if that
// has to be gathered.
enum ForwardTensor : size_t { kGateRows, kUpRows, kActivated, kResult, kRead, kForwardTensors };
// The gradient of what the activation gives without the weight; with it, and then what the activation gave; the gradient of
// what the expert reads; what it reads, and the gradient of the result, both gathered.
enum BackwardTensor : size_t { kUnweighted, kWeighted, kOfRead, kReadAgain, kOfResult, kBackwardTensors };
// After these, where nothing was kept: what goes into the activation, and what its result is multiplied with.
enum RecomputedTensor : size_t { kGateAgain = kBackwardTensors, kUpAgain, kInnerWork };

int64_t matrix_bytes(const ExpertShape& shape, int64_t outputs, int64_t inputs) {
  return PackedMatrix::bytes_for(shape.pass.precision, outputs, inputs);
}

// The rows of `x` that an expert reads: where they lie, or gathered into `memory`.
at::Tensor rows_read(const ExpertRows& rows, const at::Tensor& x, const at::Tensor& memory) {
  if (rows.places == nullptr) return x.narrow(0, rows.begin, rows.count);
  const at::Tensor out = memory.narrow(0, 0, rows.count);
  gather(rows, precision_of(x), x.const_data_ptr(), x.size(1), out.mutable_data_ptr());
  return out;
}

float rounded_to(float value, float) { return value; }
Bfloat16 rounded_to(float value, Bfloat16) { return to_bfloat16(value); }

// Calls work(row) for every row, of so many numbers.
template <class Work>
void for_each_row(const ExpertRows& rows, int64_t size, const Work& work) {
  parallel_ranges(rows.count, std::max<int64_t>(1, kScaledNumbers / size), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) work(row);
  });
}

// to = the rows of x, each times its weight: an operand of float32 numbers.
void scale_rows(const ExpertRows& rows, const at::Tensor& x, const at::Tensor& to) {
  const int64_t size = x.size(1);
  const float* from = x.const_data_ptr<float>();
  with_number(precision_of(to), [&](auto number) {
    using Number = decltype(number);
    auto* out = numbers<Number>(to);
    for_each_row(rows, size, [&](int64_t row) {
      const float weight = rows.weight(row);
      for (int64_t i = row * size; i < (row + 1) * size; ++i) out[i] = rounded_to(weight * from[i], Number{});
    });
  });
}

// The gradient of each row's weight: that of its result times what the result is without the weight, as both are before the
// last projection. Then the rows of `activated` are weighted.
void weigh_rows(const ExpertRows& rows, const at::Tensor& unweighted_grad, const at::Tensor& activated, float* of_weights) {
  const int64_t size = activated.size(1);
  const float* grad = unweighted_grad.const_data_ptr<float>();
  with_number(precision_of(activated), [&](auto number) {
    using Number = decltype(number);
    auto* out = numbers<Number>(activated);
    for_each_row(rows, size, [&](int64_t row) {
      const float weight = rows.weight(row);
      double sum = 0;
      for (int64_t i = row * size; i < (row + 1) * size; ++i) {
        const float value = to_float(out[i]);
        sum += static_cast<double>(grad[i]) * value;
        out[i] = rounded_to(weight * value, Number{});
      }
      of_weights[rows.place(row)] = static_cast<float>(sum);
    });
  });
}

template <class Work>
void for_each_part(int64_t rows, int64_t at_a_time, const Work& work) {
  for (int64_t first = 0; first < rows; first += at_a_time) work(first, std::min(at_a_time, rows - first));
}

// The projections into the activation, of at most kExpertForwardRows rows of `x`, and what that gives: [n,I], an operand.
struct ExpertEntry {
  ExpertEntry(const LayerPass& pass, const ExpertWeights& weights)
      : gate(packed({weights.gate.weight}, pass.precision)), up(packed({weights.up.weight}, pass.precision)) {}

  at::Tensor activated(const LayerPass& pass, const ExpertWeights& weights, const at::Tensor& x, const Inner& kept,
                       std::span<const at::Tensor> work) const {
    const Inner inner = Inner(work).rows(0, x.size(0));
    project(weights.gate, gate, x, inner.gate);
    project(weights.up, up, x, inner.up);
    const at::Tensor result = work[kActivated].narrow(0, 0, x.size(0));
    activate_all(pass.config.activation, inner, kept, result);
    return result;
  }

  PackedMatrix gate, up;
};

// Its three matrices as the backward reads them.
struct ExpertBack {
  ExpertBack(const LayerPass& pass, const ExpertWeights& weights)
      : gate(packed_transposed(weights.gate.weight, pass.precision)),
        up(packed_transposed(weights.up.weight, pass.precision)),
        down(packed_transposed(weights.down.weight, pass.precision)) {}

  // Of at most kExpertBackwardRows rows, which lie side by side in x and of_output; `rows` has what they count. of_x gets the
  // gradient of x, or has it added.
  void run(const LayerPass& pass, const ExpertWeights& weights, const ExpertRows& rows, const Inner& inner, const at::Tensor& x,
           const at::Tensor& of_output, const ExpertWork& work, float* of_weights, const at::Tensor& of_x, bool add) const {
    const at::Tensor unweighted = work.tensors[kUnweighted].narrow(0, 0, rows.count),
                     result = work.tensors[kWeighted].narrow(0, 0, rows.count);
    project_back(weights.down, down, of_output, unweighted, false);
    scale_rows(rows, unweighted, result);
    differentiate(pass.config.activation, inner, result);
    weigh_rows(rows, unweighted, result, of_weights);
    add_gradients(weights.down, of_output, result);
    add_gradients(weights.gate, inner.gate, x);
    add_gradients(weights.up, inner.up, x);
    project_back(weights.gate, gate, inner.gate, of_x, add);
    project_back(weights.up, up, inner.up, of_x, true);
  }

  PackedMatrix gate, up, down;
};

int64_t entry_bytes(const ExpertShape& shape) { return 2 * matrix_bytes(shape, shape.size, shape.pass.config.hidden_size); }
int64_t back_bytes(const ExpertShape& shape) {
  const int64_t hidden = shape.pass.config.hidden_size;
  return 2 * matrix_bytes(shape, hidden, shape.size) + matrix_bytes(shape, shape.size, hidden);
}

}  // namespace

TensorShapes ExpertWork::forward_shapes(const ExpertShape& shape) {
  const int64_t rows = std::min(kExpertForwardRows, shape.rows), hidden = shape.pass.config.hidden_size;
  TensorShapes shapes(kForwardTensors);
  shapes[kGateRows] = shapes[kUpRows] = {rows, shape.size};
  shapes[kActivated] = operand_shape(shape.pass.precision, rows, shape.size);
  shapes[kResult] = {rows, hidden};
  shapes[kRead] = operand_shape(shape.pass.precision, shape.takes_all ? 0 : rows, hidden);
  return shapes;
}

TensorShapes ExpertWork::backward_shapes(const ExpertShape& shape) {
  const int64_t rows = std::min(kExpertBackwardRows, shape.rows), hidden = shape.pass.config.hidden_size;
  const int64_t gathered = shape.takes_all ? 0 : rows;
  TensorShapes shapes(kBackwardTensors);
  shapes[kUnweighted] = {rows, shape.size};
  shapes[kWeighted] = operand_shape(shape.pass.precision, rows, shape.size);
  shapes[kOfRead] = {gathered, hidden};
  shapes[kReadAgain] = shapes[kOfResult] = operand_shape(shape.pass.precision, gathered, hidden);
  return shapes;
}

TensorShapes ExpertWork::output_shapes(const ExpertShape& shape) {
  TensorShapes shapes = forward_shapes(shape);
  shapes[kResult].rows = shapes[kRead].rows = 0;
  return shapes;
}

TensorShapes ExpertWork::output_backward_shapes(const ExpertShape& shape) {
  TensorShapes shapes = backward_shapes(shape);
  shapes[kOfRead].rows = shapes[kReadAgain].rows = shapes[kOfResult].rows = 0;
  shapes.resize(kInnerWork, shapes[kWeighted]);
  const TensorShapes inner = output_shapes(shape);
  shapes.insert(shapes.end(), inner.begin(), inner.end());
  return shapes;
}

int64_t expert_forward_bytes(const ExpertShape& shape) {
  return bytes_of(ExpertWork::forward_shapes(shape)) + entry_bytes(shape) +
         matrix_bytes(shape, shape.pass.config.hidden_size, shape.size);
}

int64_t expert_backward_bytes(const ExpertShape& shape) {
  return bytes_of(ExpertWork::backward_shapes(shape)) + back_bytes(shape);
}

int64_t expert_output_bytes(const ExpertShape& shape) {
  return bytes_of(ExpertWork::output_shapes(shape)) + entry_bytes(shape) +
         matrix_bytes(shape, shape.pass.config.hidden_size, shape.size);
}

int64_t expert_output_backward_bytes(const ExpertShape& shape) {
  return bytes_of(ExpertWork::output_backward_shapes(shape)) + std::max(entry_bytes(shape), back_bytes(shape));
}

void expert_forward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRows& rows, const at::Tensor& in,
                    const Inner& kept, const ExpertWork& work, const at::Tensor& out) {
  if (rows.count == 0) return;
  const ExpertEntry entry(pass, weights);
  const PackedMatrix down = packed({weights.down.weight}, pass.precision);
  for_each_part(rows.count, kExpertForwardRows, [&](int64_t first, int64_t count) {
    const ExpertRows part = rows.part(first, count);
    const at::Tensor x = rows_read(part, in, work.tensors[kRead]), y = work.tensors[kResult].narrow(0, 0, count);
    project(weights.down, down, entry.activated(pass, weights, x, kept.rows(first, count), work.tensors), y);
    add_weighted(part, y.const_data_ptr<float>(), y.size(1), out.mutable_data_ptr<float>());
  });
}

void expert_backward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRows& rows, const at::Tensor& in,
                     const Inner& kept, const at::Tensor& grad, const ExpertWork& work, float* of_weights,
                     const at::Tensor& of_in) {
  for (const LinearWeights* linear : {&weights.gate, &weights.up, &weights.down}) gradient_of(linear->weight);
  if (rows.count == 0) return;
  const ExpertBack back(pass, weights);
  for_each_part(rows.count, kExpertBackwardRows, [&](int64_t first, int64_t count) {
    const ExpertRows part = rows.part(first, count);
    const at::Tensor of_output = rows_read(part, grad, work.tensors[kOfResult]),
                     x = rows_read(part, in, work.tensors[kReadAgain]);
    const bool lies = part.places == nullptr;
    const at::Tensor of_x = lies ? of_in.narrow(0, part.begin, count) : work.tensors[kOfRead].narrow(0, 0, count);
    back.run(pass, weights, part, kept.rows(first, count), x, of_output, work, of_weights, of_x, lies);
    if (!lies) add_rows(part, of_x.const_data_ptr<float>(), of_x.size(1), of_in.mutable_data_ptr<float>());
  });
}

void expert_output(const LayerPass& pass, const ExpertWeights& weights, const at::Tensor& x, const ExpertWork& work,
                   const at::Tensor& y) {
  const ExpertEntry entry(pass, weights);
  const PackedMatrix down = packed({weights.down.weight}, pass.precision);
  const Inner nothing_kept(std::span<const at::Tensor>{});
  for_each_part(x.size(0), kExpertForwardRows, [&](int64_t first, int64_t count) {
    const at::Tensor activated = entry.activated(pass, weights, x.narrow(0, first, count), nothing_kept, work.tensors);
    project(weights.down, down, activated, y.narrow(0, first, count));
  });
}

void expert_output_backward(const LayerPass& pass, const ExpertWeights& weights, const ExpertRead& read, const ExpertWork& work,
                            const ExpertReadGradients& out) {
  const int64_t rows = read.x.size(0);
  SLUICE_CHECK(rows <= kExpertBackwardRows, "more rows of an expert than are differentiated at a time");
  const std::span<const at::Tensor> tensors(work.tensors);
  const Inner inner = Inner(tensors.subspan(kGateAgain, 2)).rows(0, rows);
  {
    const ExpertEntry entry(pass, weights);
    for_each_part(rows, kExpertForwardRows, [&](int64_t first, int64_t count) {
      entry.activated(pass, weights, read.x.narrow(0, first, count), inner.rows(first, count), tensors.subspan(kInnerWork));
    });
  }
  const ExpertRows all{.count = rows, .weights = read.weights.const_data_ptr<float>()};
  ExpertBack(pass, weights)
      .run(pass, weights, all, inner, read.x, read.grad, work, out.of_weights.mutable_data_ptr<float>(), out.of_x, false);
}

}  // namespace sluice::models
