#include "models/layers/feed_forward/experts.h"

#include <algorithm>

#include "models/layers/adapter_products.h"
#include "models/layers/feed_forward/expert_exchange.h"
#include "models/layers/feed_forward/expert_rows.h"
#include "models/layers/feed_forward/joined_routings.h"
#include "models/layers/feed_forward/routed_rows.h"
#include "models/layers/feed_forward/routing.h"
#include "models/layers/feed_forward/shared_out_experts.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/projection.h"

namespace sluice::models {
namespace {

// As in mlp.cpp: tokens whose operands are widened at a time for adapters of the shared expert.
constexpr int64_t kAdaptedRows = 1024;

// Of a pass: where kept tensors are, before those of the experts.
enum Routed : size_t { kChosen, kWeights, kShares, kSharedWeight };

bool shares_out(const PassShape& shape) { return shape.expert_ranks > 1; }

// What a router says of all tokens; with a shared expert also what that counts. Where ranks share experts out, what those of the
// others say comes last.
TensorShapes routed_shapes(const PassShape& shape) {
  const ExpertsConfig& experts = shape.config.experts;
  TensorShapes shapes{
      {shape.tokens, experts.per_token, at::kInt}, {shape.tokens, experts.per_token}, {shape.tokens, experts.count}};
  if (experts.shared_size > 0) shapes.push_back({shape.tokens, 1});
  if (shares_out(shape)) shapes.push_back(ExpertExchange::counts_shape(shape));
  return shapes;
}

// Tensors of the inner activations of experts, which are not kept where ranks share these out.
size_t inner_tensors(const PassShape& shape) { return shares_out(shape) ? 0 : 2; }

// Rows of the inner activations of all experts, one expert's after the other's; then of the shared one.
TensorShapes expert_inner_shapes(const PassShape& shape) {
  const ExpertsConfig& experts = shape.config.experts;
  TensorShapes shapes(inner_tensors(shape), operand_shape(shape.precision, shape.tokens * experts.per_token, experts.size));
  const TensorShape of_shared = operand_shape(shape.precision, shape.tokens, experts.shared_size);
  if (experts.shared_size > 0) shapes.insert(shapes.end(), 2, of_shared);
  return shapes;
}

TensorShapes sorted_shapes(const PassShape& shape) {
  const ExpertsConfig& experts = shape.config.experts;
  return {{1, shape.tokens * experts.per_token, at::kInt}, {1, experts.count + 1, at::kInt}};
}

ExpertShape routed_expert(const PassShape& shape) { return {shape, shape.config.experts.size, false, shape.tokens}; }
ExpertShape shared_expert(const PassShape& shape) { return {shape, shape.config.experts.shared_size, true, shape.tokens}; }

// The router, or the gate of the shared expert.
int64_t router_matrix_bytes(const PassShape& shape, bool transposed) {
  const int64_t outputs = shape.config.experts.count, inputs = shape.config.hidden_size;
  return transposed ? PackedMatrix::bytes_for(shape.precision, inputs, outputs)
                    : PackedMatrix::bytes_for(shape.precision, outputs, inputs);
}

// The gradients of the weights of all experts, and what they come to at the logits of the router.
TensorShapes weight_gradient_shapes(const PassShape& shape) {
  const ExpertsConfig& experts = shape.config.experts;
  TensorShapes shapes{{shape.tokens, experts.per_token}};
  if (experts.shared_size > 0) shapes.push_back({shape.tokens, 1});
  return shapes;
}

// The gate of the shared expert stands after its three matrices.
const LinearWeights& shared_gate_of(std::span<const LinearWeights> weights) { return weights.back(); }

/// The tokens of each expert, as the router has chosen.
class SortedRows {
 public:
  SortedRows(const PassShape& shape, std::span<const at::Tensor> routed)
      : experts_(shape.config.experts), tokens_(shape.tokens), routed_(routed), sorted_(allocated(sorted_shapes(shape))) {
    sort_by_expert(experts_, tokens_, routed[kChosen].const_data_ptr<int32_t>(), sorted_[0].mutable_data_ptr<int32_t>(),
                   sorted_[1].mutable_data_ptr<int32_t>());
  }

  RoutedRows all() const {
    return {.places = sorted_[0].const_data_ptr<int32_t>(),
            .first = sorted_[1].const_data_ptr<int32_t>(),
            .weights = routed_[kWeights].const_data_ptr<float>(),
            .per_token = experts_.per_token};
  }

  ExpertRows of_shared() const { return {.count = tokens_, .weights = routed_[kSharedWeight].const_data_ptr<float>()}; }

 private:
  const ExpertsConfig& experts_;  // of the pass
  const int64_t tokens_;
  const std::span<const at::Tensor> routed_;
  const std::vector<at::Tensor> sorted_;
};

RouterRows router_rows(std::span<const at::Tensor> routed) {
  return {routed[kShares].mutable_data_ptr<float>(), routed[kChosen].mutable_data_ptr<int32_t>(),
          routed[kWeights].mutable_data_ptr<float>()};
}

void route_all(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
               std::span<const at::Tensor> routed, const LayerRoutes& routes) {
  const LinearWeights& router = weights[Experts::kRouter];
  project(router, packed({router.weight}, pass.precision), in, routed[kShares]);
  route(pass.config.experts, in.size(0), router_rows(routed), routes);
  if (pass.config.experts.shared_size == 0) return;
  const LinearWeights& gate = shared_gate_of(weights);
  project(gate, packed({gate.weight}, pass.precision), in, routed[kSharedWeight]);
  sigmoid(routed[kSharedWeight].mutable_data_ptr<float>(), in.size(0));
}

// Adds to the gradient of `in` and to that of the router what comes through the logits.
void logits_backward(const LayerPass& pass, const LinearWeights& router, const at::Tensor& in, const at::Tensor& of_logits,
                     const at::Tensor& of_in) {
  const at::Tensor grad = to_operand(of_logits, pass.precision);
  add_gradients(router, grad, in);
  project_back(router, packed_transposed(router.weight, pass.precision), grad, of_in, true);
}

// The softmax of the router becomes the gradient of its logits, sample by sample where the routers have a loss.
void shares_backward(const ExpertsConfig& experts, int64_t tokens, std::span<const at::Tensor> routed, const float* of_weights,
                     const RouterOfLayer* router) {
  const RouterRows all = router_rows(routed);
  std::vector<std::vector<float>> slopes;
  if (router != nullptr) {
    const auto samples = sample_routings(experts, router->offsets, all.chosen, all.logits);
    slopes = router->training.add(experts, router->layer, of_all_segments(router->segment, samples));
  }
  if (slopes.empty()) return route_backward(experts, tokens, all, of_weights, nullptr, all.logits);
  for (size_t s = 0; s < slopes.size(); ++s) {
    const int64_t first = router->offsets[s], place = first * experts.per_token;
    const RouterRows rows{all.logits + first * experts.count, all.chosen + place, all.weights + place};
    route_backward(experts, router->offsets[s + 1] - first, rows, of_weights + place, slopes[s].data(), rows.logits);
  }
}

void router_backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                     std::span<const at::Tensor> routed, std::span<const at::Tensor> of_weights, const at::Tensor& of_in,
                     const RouterOfLayer* router) {
  const at::Tensor& shares = routed[kShares];
  shares_backward(pass.config.experts, in.size(0), routed, of_weights[0].const_data_ptr<float>(), router);
  logits_backward(pass, weights[Experts::kRouter], in, shares, of_in);
  if (pass.config.experts.shared_size == 0) return;
  const float* weight = routed[kSharedWeight].const_data_ptr<float>();
  float* grad = of_weights[1].mutable_data_ptr<float>();
  for (int64_t t = 0; t < in.size(0); ++t) grad[t] *= weight[t] * (1 - weight[t]);
  logits_backward(pass, shared_gate_of(weights), in, of_weights[1], of_in);
}

}  // namespace

ExpertWeights expert_of(std::span<const LinearWeights> weights, size_t expert) {
  return {weights[Experts::linear_of(expert, Mlp::kGate)], weights[Experts::linear_of(expert, Mlp::kUp)],
          weights[Experts::linear_of(expert, Mlp::kDown)]};
}

TensorShapes Experts::kept(const PassShape& shape) const {
  TensorShapes shapes = routed_shapes(shape);
  const TensorShapes inner = expert_inner_shapes(shape);
  shapes.insert(shapes.end(), inner.begin(), inner.end());
  return shapes;
}

// One expert at a time, the shared one last; the router before them, and in the backward after them.
PartBytes Experts::bytes(const PassShape& shape) const {
  const bool shared = shape.config.experts.shared_size > 0;
  const int64_t sorted = bytes_of(sorted_shapes(shape)), routed = bytes_of(routed_shapes(shape));
  const int64_t of_experts = shares_out(shape) ? shared_out_forward_bytes(shape) : expert_forward_bytes(routed_expert(shape));
  const int64_t back = shares_out(shape) ? shared_out_backward_bytes(shape) : expert_backward_bytes(routed_expert(shape));
  const int64_t forward = std::max({sorted + of_experts, router_matrix_bytes(shape, false),
                                    if_there(shared, sorted + expert_forward_bytes(shared_expert(shape)))});
  const int64_t narrow =
      if_there(shape.rounds(), operand_shape(shape.precision, shape.tokens, shape.config.experts.count).bytes());
  const int64_t backward =
      std::max({back, narrow + router_matrix_bytes(shape, true), if_there(shared, expert_backward_bytes(shared_expert(shape)))});
  return {.kept = bytes_of(kept(shape)),
          .forward = routed + forward,
          .backward = sorted + bytes_of(weight_gradient_shapes(shape)) + backward};
}

int64_t Experts::adapter_bytes(const PassShape& shape) const {
  const int64_t shared = shape.config.experts.shared_size, rows = std::min(kAdaptedRows, shape.tokens);
  return if_there(shared > 0, 2 * widened_bytes(shape.precision, rows, shape.config.hidden_size + shared));
}

void Experts::forward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                      std::span<const at::Tensor> kept, const LayerRoutes& routes, const at::Tensor& out, bool add) const {
  const PassShape shape = pass.shape();
  const size_t routed_count = routed_shapes(shape).size();
  const std::vector<at::Tensor> own = kept.empty() ? allocated(routed_shapes(shape)) : std::vector<at::Tensor>();
  const std::span<const at::Tensor> routed = kept.empty() ? own : kept.first(routed_count);
  const std::span<const at::Tensor> inner = kept.empty() ? kept : kept.subspan(routed_count);
  route_all(pass, weights, in, routed, routes);
  const SortedRows sorted(shape, routed);
  if (!add) out.zero_();
  if (shares_out(shape)) {
    shared_out_forward(pass, weights, sorted.all(), routed.back(), in, out);
  } else {
    const ExpertWork work = ExpertWork::of_forward(routed_expert(shape));
    const Inner all(inner.first(std::min<size_t>(2, inner.size())));
    for (int64_t e = 0; e < pass.config.experts.count; ++e) {
      const ExpertRows rows = sorted.all().of(e);
      const Inner kept_rows = all.rows(sorted.all().begin_of(e), rows.count);
      expert_forward(pass, expert_of(weights, static_cast<size_t>(e)), rows, in, kept_rows, work, out);
    }
  }
  if (pass.config.experts.shared_size == 0) return;
  const ExpertWork work = ExpertWork::of_forward(shared_expert(shape));
  const Inner all(inner.empty() ? inner : inner.subspan(inner_tensors(shape)));
  expert_forward(pass, expert_of(weights, static_cast<size_t>(pass.config.experts.count)), sorted.of_shared(), in, all, work,
                 out);
}

void Experts::backward(const LayerPass& pass, std::span<const LinearWeights> weights, const at::Tensor& in,
                       std::span<const at::Tensor> kept, const at::Tensor& grad, const ReadGradient& of_in,
                       const RouterOfLayer* router) const {
  const PassShape shape = pass.shape();
  const size_t routed_count = routed_shapes(shape).size();
  const std::span<const at::Tensor> routed = kept.first(routed_count), inner = kept.subspan(routed_count);
  const SortedRows sorted(shape, routed);
  const std::vector<at::Tensor> of_weights = allocated(weight_gradient_shapes(shape));
  if (!of_in.add) of_in.out.zero_();
  float* const of_routed = of_weights[0].mutable_data_ptr<float>();
  if (shares_out(shape)) {
    shared_out_backward(pass, weights, sorted.all(), routed.back(), in, grad, of_routed, of_in.out);
  } else {
    const ExpertWork work = ExpertWork::of_backward(routed_expert(shape));
    const Inner all(inner.first(2));
    for (int64_t e = 0; e < pass.config.experts.count; ++e) {
      const ExpertRows rows = sorted.all().of(e);
      const Inner kept_rows = all.rows(sorted.all().begin_of(e), rows.count);
      expert_backward(pass, expert_of(weights, static_cast<size_t>(e)), rows, in, kept_rows, grad, work, of_routed, of_in.out);
    }
  }
  if (pass.config.experts.shared_size > 0) {
    const ExpertWork work = ExpertWork::of_backward(shared_expert(shape));
    expert_backward(pass, expert_of(weights, static_cast<size_t>(pass.config.experts.count)), sorted.of_shared(), in,
                    Inner(inner.subspan(inner_tensors(shape))), grad, work, of_weights[1].mutable_data_ptr<float>(), of_in.out);
  }
  router_backward(pass, weights, in, routed, of_weights, of_in.out, router);
}

}  // namespace sluice::models
