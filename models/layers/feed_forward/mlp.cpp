#include "models/layers/feed_forward/mlp.h"

#include <algorithm>

#include "models/kernels/row_kernels.h"
#include "models/layers/adapter_products.h"
#include "models/layers/feed_forward/inner.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/projection.h"

namespace sluice::models {
namespace {

// Tokens whose inner activations exist at a time beside what is kept: in the forward in float32. More in the backward, where each
// time goes over the gradients of all weights.
constexpr int64_t kForwardTokens = 256, kBackwardTokens = 1024;

using Linears = std::span<const LinearWeights>;
using Tensors = std::span<const at::Tensor>;

// The projections of some tokens before the activation; no `up` in a plain network.
TensorShapes inner_shapes(const ModelConfig& config, Precision precision, int64_t tokens) {
  return TensorShapes(config.gated_mlp ? 2 : 1, operand_shape(precision, tokens, config.intermediate_size));
}

// What the forward works with: the projections of a chunk in float32, and what the activation makes of them.
TensorShapes forward_shapes(const PassShape& shape) {
  const int64_t chunk = std::min(kForwardTokens, shape.tokens);
  TensorShapes shapes = inner_shapes(shape.config, Precision::kFloat32, chunk);
  shapes.push_back(operand_shape(shape.precision, chunk, shape.config.intermediate_size));
  return shapes;
}

// What the backward works with: what the activation gave, and its gradient.
TensorShape backward_shape(const PassShape& shape) {
  return operand_shape(shape.precision, std::min(kBackwardTokens, shape.tokens), shape.config.intermediate_size);
}

// Every matrix, packed as it is and transposed.
PartBytes packed_bytes(const PassShape& shape) {
  PartBytes bytes;
  for (const NetworkTensor& tensor : kMlp.tensors(shape.config)) {
    if (tensor.bias) continue;
    bytes.forward += PackedMatrix::bytes_for(shape.precision, tensor.shape[0], tensor.shape[1]);
    bytes.backward += PackedMatrix::bytes_for(shape.precision, tensor.shape[1], tensor.shape[0]);
  }
  return bytes;
}

bool is_gated(Linears weights) { return weights[Mlp::kGate].weight.defined(); }

// The projection that goes into the activation: of a plain network, its only one.
const LinearWeights& entry_of(Linears weights) { return weights[is_gated(weights) ? Mlp::kGate : Mlp::kUp]; }

template <class Work>
void for_each_chunk(int64_t tokens, int64_t of_chunk, const Work& work) {
  for (int64_t first = 0; first < tokens; first += of_chunk) work(first, std::min(of_chunk, tokens - first));
}

}  // namespace

TensorShapes Mlp::kept(const PassShape& shape) const { return inner_shapes(shape.config, shape.precision, shape.tokens); }

PartBytes Mlp::bytes(const PassShape& shape) const {
  const PartBytes packed = packed_bytes(shape);
  return {.kept = bytes_of(kept(shape)),
          .forward = packed.forward + bytes_of(forward_shapes(shape)),
          .backward = packed.backward + backward_shape(shape).bytes()};
}

int64_t Mlp::adapter_bytes(const PassShape& shape) const {
  const ModelConfig& config = shape.config;
  const int64_t rows = std::min(kBackwardTokens, shape.tokens);
  return 2 * widened_bytes(shape.precision, rows, config.hidden_size + config.intermediate_size);
}

void Mlp::forward(const LayerPass& pass, Linears weights, const at::Tensor& in, Tensors kept, const LayerRoutes&,
                  const at::Tensor& out, bool add) const {
  const LinearWeights &entry = entry_of(weights), &up = weights[kUp], &down = weights[kDown];
  const PackedMatrix packed_entry = packed({entry.weight}, pass.precision), packed_down = packed({down.weight}, pass.precision);
  const PackedMatrix packed_up = is_gated(weights) ? packed({up.weight}, pass.precision) : PackedMatrix();
  const std::vector<at::Tensor> work = allocated(forward_shapes(pass.shape()));
  const Inner all_kept(kept), all(Tensors(work).first(work.size() - 1));
  for_each_chunk(in.size(0), kForwardTokens, [&](int64_t first, int64_t count) {
    const Inner inner = all.rows(0, count);
    const at::Tensor from = in.narrow(0, first, count), result = work.back().narrow(0, 0, count);
    project(entry, packed_entry, from, inner.gate);
    if (!packed_up.empty()) project(up, packed_up, from, inner.up);
    activate_all(pass.config.activation, inner, all_kept.rows(first, count), result);
    project(down, packed_down, result, out.narrow(0, first, count), add);
  });
}

void Mlp::backward(const LayerPass& pass, Linears weights, const at::Tensor& in, Tensors kept, const at::Tensor& grad,
                   const ReadGradient& of_in, const RouterOfLayer*) const {
  const LinearWeights &entry = entry_of(weights), &up = weights[kUp], &down = weights[kDown];
  const PackedMatrix back_down = packed_transposed(down.weight, pass.precision),
                     back_entry = packed_transposed(entry.weight, pass.precision);
  const PackedMatrix back_up = is_gated(weights) ? packed_transposed(up.weight, pass.precision) : PackedMatrix();
  const at::Tensor memory = allocated(backward_shape(pass.shape()));
  const Inner all(kept);
  for_each_chunk(grad.size(0), kBackwardTokens, [&](int64_t first, int64_t count) {
    const Inner inner = all.rows(first, count);
    const at::Tensor result = memory.narrow(0, 0, count), from = grad.narrow(0, first, count);
    project_back(down, back_down, from, result, false);
    differentiate(pass.config.activation, inner, result);
    add_gradients(down, from, result);
    const at::Tensor read = in.narrow(0, first, count), to = of_in.out.narrow(0, first, count);
    add_gradients(entry, inner.gate, read);
    project_back(entry, back_entry, inner.gate, to, of_in.add);
    if (back_up.empty()) return;
    add_gradients(up, inner.up, read);
    project_back(up, back_up, inner.up, to, true);
  });
}

at::Tensor Mlp::in_operators(const ModelConfig& config, Linears weights, const at::Tensor& in, const TensorMaths& maths,
                             const RouterOfLayer*, const RoutesInOperators&) const {
  const at::Tensor inner = config.gated_mlp ? maths.gated(config.activation, in, weights[kGate], weights[kUp])
                                            : maths.operand(activated(config.activation, maths.product(in, weights[kUp])));
  return maths.product(inner, weights[kDown]);
}

void Mlp::step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
               StepScratch& scratch) const {
  if (!rows.share.has_columns()) return;
  const PackedLinear &gate_up = packed[0], &down = packed[1];
  const int64_t size = rows.share.of(config.intermediate_size).size(), width = gate_up.matrix.outputs();
  float* const projected = scratch.floats(0, rows.tokens * width);
  project(gate_up, rows.x, rows.tokens, projected);
  const OperandRows own = scratch.operand(1, down.matrix.precision(), rows.tokens * size);
  activate(config.activation, projected, config.gated_mlp ? projected + size : nullptr, width, rows.tokens, size, own);
  const int64_t all = config.intermediate_size, hidden = config.hidden_size;
  const OperandRows inner =
      rows.share.gathered(own, rows.tokens, all, [&] { return scratch.operand(2, down.matrix.precision(), rows.tokens * all); });
  project(down, inner.data(), rows.tokens, rows.out + rows.share.of(hidden).begin, hidden, rows.accumulate);
}

}  // namespace sluice::models
