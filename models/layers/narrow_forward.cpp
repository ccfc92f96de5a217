#include "models/layers/narrow_forward.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>

#include <limits>
#include <vector>

#include "base/error.h"
#include "models/kernels/rotary.h"
#include "models/layers/feed_forward/feed_forward.h"

namespace sluice::models {
namespace {

at::Tensor capped(const at::Tensor& x, double cap) { return cap == 0 ? x : (x / cap).tanh() * cap; }

/// One sample of L tokens through all layers. Tensors are in the dtype of the weights unless they say otherwise.
class NarrowSample final : public TensorMaths {
 public:
  NarrowSample(const ModelConfig& config, int64_t length, at::ScalarType dtype)
      : config_(config), length_(length), dtype_(dtype) {
    if (config.learned_positions) return;
    for (int64_t which = 0; which < config.ropes(); ++which) angles_.push_back(angles_of(RotaryTable(config, length, which)));
  }

  at::Tensor embed(const Weights& weights, const at::Tensor& tokens) const {
    at::Tensor x = at::embedding(weights.embedding, tokens);
    if (config_.embedding_scale != 1.0) x = x * at::scalar_tensor(config_.embedding_scale, at::kFloat).to(dtype_);
    if (config_.learned_positions) x = x + weights.positions.narrow(0, 0, length_);
    return x;  // [L,H]
  }

  at::Tensor add_attention(const at::Tensor& x, const LayerWeights& layer, int64_t index) const {
    const at::Tensor in =
        config_.norm_place == NormPlace::kAfter ? x : normalised(x, layer.attention_norm, layer.attention_norm_bias);
    const at::Tensor query = rotated(heads(product(in, layer.query), layer.query_norm), index);  // [Nq,L,D]
    const at::Tensor key = rotated(heads(product(in, layer.key), layer.key_norm), index);        // [Nk,L,D]
    const at::Tensor value = heads(product(in, layer.value), {});                                // [Nk,L,D]
    const int64_t group = config_.heads / config_.kv_heads;
    const at::Tensor attended = attention(query, key.repeat_interleave(group, 0), value.repeat_interleave(group, 0), index);
    const at::Tensor joined = attended.transpose(0, 1).reshape({length_, config_.heads * config_.head_dim});
    return added(x, product(joined, layer.attention_output), layer.attention_output_norm);
  }

  at::Tensor add_feed_forward(const at::Tensor& x, const LayerWeights& layer, int64_t index,
                              const RoutesInOperators& routes) const {
    const at::Tensor in =
        config_.norm_place == NormPlace::kAfter ? x : normalised(x, layer.feed_forward_norm, layer.feed_forward_norm_bias);
    return added(x, feed_forward_of(config_, index).in_operators(config_, layer.feed_forward, in, *this, nullptr, routes),
                 layer.feed_forward_output_norm);
  }

  at::Tensor operand(const at::Tensor& x) const override { return x; }
  at::Tensor product(const at::Tensor& x, const LinearWeights& layer) const override {
    return at::linear(x, layer.weight, layer.bias);
  }

  // OLMo 2 and Gemma 2 multiply before they round, the others after.
  at::Tensor normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) const {
    if (config_.norm == NormKind::kLayer) return at::layer_norm(x, {x.size(-1)}, weight, bias, config_.norm_eps);
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor unit = wide * (wide.square().mean(-1, true) + config_.norm_eps).rsqrt();
    if (config_.norm == NormKind::kRmsFromOne) return (unit * (1.0 + weight.to(at::kFloat))).to(dtype_);
    if (config_.norm_place == NormPlace::kAfter) return (weight * unit).to(dtype_);
    return weight * unit.to(dtype_);
  }

 private:
  struct Angles {
    at::Tensor cosines, sines;  // [L,dims]
  };

  // OLMo rounds after rotary positions, the others before it.
  Angles angles_of(const RotaryTable& table) const {
    const int64_t half = table.dims() / 2;
    const bool rounds_behind = config_.norm_place == NormPlace::kAfter;
    const at::Tensor rows = at::from_blob(const_cast<float*>(table.row(0)), {length_, 2 * half}, at::kFloat)  // copied below
                                .to(rounds_behind ? at::kFloat : dtype_);
    const auto of_dimensions = [&](const at::Tensor& of_pairs) {
      return config_.rotary_neighbours ? of_pairs.repeat_interleave(2, 1) : at::cat({of_pairs, of_pairs}, 1);
    };
    return {of_dimensions(rows.narrow(1, 0, half)), of_dimensions(rows.narrow(1, half, half))};
  }

  at::Tensor added(const at::Tensor& x, const at::Tensor& out, const at::Tensor& norm_weight) const {
    return x + (config_.norm_place == NormPlace::kBefore ? out : normalised(out, norm_weight));
  }

  // [L,heads*D] as [heads,L,D], normalised if there is a weight for it
  at::Tensor heads(at::Tensor x, const at::Tensor& norm_weight) const {
    if (norm_weight.defined() && config_.qk_norm == QkNorm::kProjection) x = normalised(x, norm_weight);
    x = x.view({length_, -1, config_.head_dim});
    if (norm_weight.defined() && config_.qk_norm == QkNorm::kHead) x = normalised(x, norm_weight);
    return x.transpose(0, 1);
  }

  at::Tensor rotated(const at::Tensor& x, int64_t index) const {
    const int64_t rope = config_.rope_index(index);
    if (rope == kNoRope) return x;
    const auto& [cosines, sines] = angles_[static_cast<size_t>(rope)];
    const int64_t dims = cosines.size(1), half = dims / 2;
    const at::Tensor part = x.narrow(2, 0, dims);
    const at::Tensor swapped = config_.rotary_neighbours
                                   ? at::stack({-part.slice(2, 1, dims, 2), part.slice(2, 0, dims, 2)}, 3).flatten(2)
                                   : at::cat({-part.narrow(2, half, half), part.narrow(2, 0, half)}, 2);
    const at::Tensor result = (part * cosines + swapped * sines).to(dtype_);
    return dims == x.size(2) ? result : at::cat({result, x.narrow(2, dims, x.size(2) - dims)}, 2);
  }

  // [L,L]: which keys (columns) a query sees
  at::Tensor seen(int64_t index) const {
    const at::Tensor place = at::arange(length_);
    const at::Tensor back = place.unsqueeze(1) - place.unsqueeze(0);
    const int64_t window = config_.window_of(index);
    return window > 0 ? (back >= 0).logical_and(back < window) : back >= 0;
  }

  // [Nq,L,D]
  at::Tensor attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, int64_t index) const {
    // Gemma 2, for the sake of its soft cap. Gemma 3 norms queries and keys instead.
    const bool step_by_step = config_.norm == NormKind::kRmsFromOne && config_.qk_norm == QkNorm::kNone;
    if (!step_by_step) {
      const int64_t window = config_.window_of(index);
      const bool causal = window == 0 || window >= length_;
      const auto mask = causal ? std::nullopt : std::optional<at::Tensor>(seen(index));
      return at::scaled_dot_product_attention(query.unsqueeze(0), key.unsqueeze(0), value.unsqueeze(0), mask, 0.0,
                                              causal && length_ > 1, config_.score_scale())
          .squeeze(0);
    }
    const at::Tensor scores = capped(at::matmul(query, key.transpose(1, 2)) * config_.score_scale(), config_.attention_softcap);
    const at::Tensor hidden =
        scores.to(at::kFloat).masked_fill(seen(index).logical_not(), -std::numeric_limits<float>::infinity());
    return at::matmul(at::softmax(hidden, -1).to(dtype_), value);
  }

  const ModelConfig& config_;
  int64_t length_;
  at::ScalarType dtype_;
  std::vector<Angles> angles_;  // for each rope_at() of the config; none with learned positions
};

}  // namespace

at::Tensor narrow_hidden_states(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens,
                                std::span<const int64_t> sample_offsets, const at::Tensor& routes) {
  std::vector<at::Tensor> samples;
  for (size_t s = 0; s + 1 < sample_offsets.size(); ++s) {
    const int64_t first = sample_offsets[s], length = sample_offsets[s + 1] - first;
    if (length == 0) continue;
    SLUICE_CHECK(!config.learned_positions || length <= weights.positions.size(0),
                 "a sample is longer than the table of positions");
    const NarrowSample sample(config, length, weights.embedding.scalar_type());
    at::Tensor x = sample.embed(weights, tokens.narrow(0, first, length));
    const at::Tensor of_sample = routes.defined() ? routes.narrow(0, first, length) : routes;
    for (int64_t i = 0; i < std::ssize(weights.layers); ++i) {
      const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
      x = sample.add_attention(x, layer, i);
      x = sample.add_feed_forward(x, layer, i, {.given = layer_routes_in_operators(config, of_sample, i)});
    }
    samples.push_back(sample.normalised(x, weights.final_norm, weights.final_norm_bias));
  }
  return samples.empty() ? at::embedding(weights.embedding, tokens) : at::cat(samples, 0);
}

at::Tensor narrow_logits(const at::Tensor& hidden, const at::Tensor& head, double softcap) {
  return capped(at::linear(hidden.to(head.scalar_type()), head), softcap).to(at::kFloat);
}

}  // namespace sluice::models
