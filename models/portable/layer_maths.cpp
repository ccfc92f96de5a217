#include "models/portable/layer_maths.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/tanh.h>

#include <functional>

#include "models/adapters/lora.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/weight_names.h"
#include "models/portable/gated.h"
#include "models/portable/product.h"
#include "models/portable/rms_norm.h"
#include "models/portable/rotary.h"

namespace sluice::models::portable {
namespace {

// The matrix and what its adapter changes of it: float32.
at::Tensor merged(const LinearWeights& linear) {
  const at::NoGradGuard no_gradient;
  return at::addmm(linear.weight.to(at::kFloat), linear.adapter.b.mul(linear.adapter.scale), linear.adapter.a);
}

// Whether a weight is copied into its copy. Of a matrix with an adapter the weight is that.
using Which = std::function<bool(const at::Tensor& weight, const at::Tensor& copy)>;

void copy_some(const Weights& from, Weights& to, const Which& which) {
  const at::NoGradGuard no_gradient;
  Weights sources = without_adapters(from), copies = to;
  if (from.head.is_same(from.embedding)) sources.head.reset(), copies.head.reset();
  for (size_t i = 0; i < from.layers.size(); ++i) {
    const auto linears = from.layers[i].linears();
    const auto of_sources = sources.layers[i].linears(), of_copies = copies.layers[i].linears();
    for (size_t j = 0; j < linears.size(); ++j) {
      const Adapter& adapter = linears[j]->adapter;
      if (!adapter.defined()) continue;
      if (which(adapter.a, of_copies[j]->weight)) of_copies[j]->weight.copy_(merged(*linears[j]));
      of_sources[j]->weight.reset(), of_copies[j]->weight.reset();
    }
  }
  const auto of_sources = weight_slots(sources), of_copies = weight_slots(copies);
  for (size_t i = 0; i < of_sources.size(); ++i) {
    at::Tensor &weight = *of_sources[i].second, &copy = *of_copies[i].second;
    if (weight.defined() && !which(weight, copy)) weight.reset(), copy.reset();
  }
  copies.copy_from(sources);  // rounds
}

}  // namespace

at::Tensor LayerMaths::operand(const at::Tensor& x) const { return x.to(dtype_of(precision_)); }

at::Tensor LayerMaths::product(const at::Tensor& x, const LinearWeights& layer) const {
  const at::Tensor out = portable::product(x, layer.weight, layer.bias, precision_);
  const Adapter& adapter = layer.adapter;
  if (!adapter.defined()) return out;
  const at::Tensor inner = at::linear(x.to(at::kFloat), adapter.a).mul(adapter.scale);  // [T,r]
  return out.add(at::linear(inner, adapter.b));
}

at::Tensor LayerMaths::gated(Activation activation, const at::Tensor& x, const LinearWeights& gate,
                             const LinearWeights& up) const {
  if (multiplies_gated(x, gate, up)) return gated_products(activation, x, gate.weight, up.weight);
  return portable::gated(activation, product(x, gate), product(x, up), dtype_of(precision_));
}

at::Tensor LayerMaths::embed(const Weights& weights, const at::Tensor& tokens, const at::Tensor& positions) const {
  at::Tensor x = rounded(at::embedding(weights.embedding, tokens), precision_);
  if (config_.embedding_scale != 1.0) x = x.mul(config_.embedding_scale);
  return config_.learned_positions ? x.add(at::embedding(weights.positions, positions)) : x;
}

LayerMaths::Heads LayerMaths::heads(const at::Tensor& x, const LayerWeights& layer, const at::Tensor& angles) const {
  const at::Tensor in = read(x, layer.attention_norm, layer.attention_norm_bias);
  const at::Tensor query = split(product(in, layer.query), layer.query_norm);
  const at::Tensor key = split(product(in, layer.key), layer.key_norm);
  const at::Tensor value = split(product(in, layer.value), {});
  const at::ScalarType dtype = dtype_of(precision_);
  const bool neighbours = config_.rotary_neighbours;
  return {rotated(query, angles, neighbours, dtype), rotated(key, angles, neighbours, dtype), operand(value)};
}

// [T,N*D] as [T,N,D], normalised if there is a weight for it
at::Tensor LayerMaths::split(const at::Tensor& x, const at::Tensor& norm_weight) const {
  const bool whole = norm_weight.defined() && config_.qk_norm == QkNorm::kProjection;
  const at::Tensor apart = (whole ? normalised(x, norm_weight) : x).view({x.size(0), -1, config_.head_dim});
  return norm_weight.defined() && config_.qk_norm == QkNorm::kHead ? normalised(apart, norm_weight) : apart;
}

at::Tensor LayerMaths::add_attended(const at::Tensor& x, const at::Tensor& attended, const LayerWeights& layer) const {
  return added(x, product(operand(attended), layer.attention_output), layer.attention_output_norm);
}

at::Tensor LayerMaths::add_feed_forward(const at::Tensor& x, const LayerWeights& layer, int64_t index,
                                        const RouterOfLayer* router, const RoutesInOperators& routes) const {
  const at::Tensor in = read(x, layer.feed_forward_norm, layer.feed_forward_norm_bias);
  return added(x, feed_forward_of(config_, index).in_operators(config_, layer.feed_forward, in, *this, router, routes),
               layer.feed_forward_output_norm);
}

at::Tensor LayerMaths::normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) const {
  return normalised_as(at::kFloat, x, weight, bias);
}

at::Tensor LayerMaths::normalised_as(at::ScalarType dtype, const at::Tensor& x, const at::Tensor& weight,
                                     const at::Tensor& bias) const {
  if (config_.norm == NormKind::kLayer) return at::layer_norm(x, {x.size(-1)}, weight, bias, config_.norm_eps).to(dtype);
  return rms_normalised(x, weight, config_.norm_eps, config_.norm == NormKind::kRmsFromOne, dtype);
}

at::Tensor LayerMaths::logits(const at::Tensor& hidden, const at::Tensor& head) const {
  const at::Tensor logits = portable::product(operand(hidden), head, {}, precision_);
  return config_.logit_softcap == 0 ? logits : logits.div(config_.logit_softcap).tanh().mul(config_.logit_softcap);
}

// What attention or the feed-forward network reads of the residual stream: an operand.
at::Tensor LayerMaths::read(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias) const {
  if (config_.norm_place == NormPlace::kAfter) return operand(x);
  return normalised_as(dtype_of(precision_), x, norm_weight, norm_bias);
}

at::Tensor LayerMaths::added(const at::Tensor& x, const at::Tensor& out, const at::Tensor& norm_weight) const {
  return x.add(config_.norm_place == NormPlace::kBefore ? out : normalised(out, norm_weight));
}

at::Tensor angles_of_layer(const ModelConfig& config, const std::vector<at::Tensor>& angles, int64_t layer) {
  const int64_t rope = config.rope_index(layer);
  return rope == kNoRope ? at::Tensor() : angles[static_cast<size_t>(rope)];
}

Weights operand_copy(const Weights& weights, Precision precision) {
  const auto narrow = [&](at::Tensor& matrix) {
    if (matrix.defined()) matrix = matrix.detach().to(dtype_of(precision));
  };
  Weights copy = weights;
  for (LayerWeights& layer : copy.layers) {
    for (LinearWeights* linear : layer.linears()) {
      if (linear->adapter.defined()) linear->weight = merged(*linear);
      linear->adapter = {};
      narrow(linear->weight);
    }
  }
  narrow(copy.embedding);
  narrow(copy.head);
  if (weights.head.is_same(weights.embedding)) copy.head = copy.embedding;
  return copy;
}

void copy_operands(const Weights& from, Weights& to) {
  copy_some(from, to, [](const at::Tensor&, const at::Tensor&) { return true; });
}

void copy_trained_operands(const Weights& from, Weights& to, const std::set<const void*>& but) {
  copy_some(from, to, [&](const at::Tensor& weight, const at::Tensor& copy) {
    return weight.requires_grad() && !but.contains(copy.const_data_ptr());
  });
}

}  // namespace sluice::models::portable
