#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "models/config.h"
#include "models/rotary.h"
#include "models/weight_names.h"
#include "models/weights.h"

/// The oracle of the generation tests: a transformer out of ATen's own operators, with all the switches of ModelConfig, dense,
/// without a cache, recomputed for every call.
namespace sluice::models::reference {

inline ModelConfig small_config() {
  ModelConfig config;
  config.vocab_size = 37;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.layers = 2;
  config.heads = 4;
  config.kv_heads = 2;
  config.head_dim = 6;
  config.max_positions = 128;
  return config;
}

inline LayerWeights random_layer(const ModelConfig& c, const std::function<at::Tensor(at::IntArrayRef)>& random) {
  const int64_t queries = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
  const bool before = c.norm_place != NormPlace::kAfter, after = c.norm_place != NormPlace::kBefore;
  const auto random_norm = [&](int64_t size) { return random({size}).add_(c.norm == NormKind::kRmsFromOne ? 0 : 1); };
  const auto if_so = [](bool there, const auto& make) { return there ? make() : at::Tensor(); };
  const auto bias = [&](bool there, int64_t size) { return there ? random({size}) : at::Tensor(); };
  LayerWeights layer;
  layer.attention_norm = if_so(before, [&] { return random_norm(c.hidden_size); });
  layer.attention_norm_bias = bias(before && c.norm == NormKind::kLayer, c.hidden_size);
  layer.query = random({queries, c.hidden_size});
  layer.key = random({keys, c.hidden_size});
  layer.value = random({keys, c.hidden_size});
  layer.query_bias = bias(c.qkv_bias, queries);
  layer.key_bias = bias(c.qkv_bias, keys);
  layer.value_bias = bias(c.qkv_bias, keys);
  if (c.qk_norm != QkNorm::kNone) {
    layer.query_norm = random_norm(c.qk_norm == QkNorm::kHead ? c.head_dim : queries);
    layer.key_norm = random_norm(c.qk_norm == QkNorm::kHead ? c.head_dim : keys);
  }
  layer.attention_output = random({c.hidden_size, queries});
  layer.attention_output_bias = bias(c.attention_output_bias, c.hidden_size);
  layer.attention_output_norm = if_so(after, [&] { return random_norm(c.hidden_size); });
  layer.mlp_norm = if_so(before, [&] { return random_norm(c.hidden_size); });
  layer.mlp_norm_bias = bias(before && c.norm == NormKind::kLayer, c.hidden_size);
  layer.gate = if_so(c.gated_mlp, [&] { return random({c.intermediate_size, c.hidden_size}); });
  layer.gate_bias = bias(c.gated_mlp && c.mlp_bias, c.intermediate_size);
  layer.up = random({c.intermediate_size, c.hidden_size});
  layer.up_bias = bias(c.mlp_bias, c.intermediate_size);
  layer.down = random({c.hidden_size, c.intermediate_size});
  layer.down_bias = bias(c.mlp_bias, c.hidden_size);
  layer.mlp_output_norm = if_so(after, [&] { return random_norm(c.hidden_size); });
  return layer;
}

inline Weights random_weights(const ModelConfig& c, double scale = 0.3) {
  const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, at::kFloat).mul_(scale); };
  Weights weights;
  weights.embedding = random({c.vocab_size, c.hidden_size});
  if (c.learned_positions) weights.positions = random({c.max_positions, c.hidden_size});
  for (int64_t i = 0; i < c.layers; ++i) weights.layers.push_back(random_layer(c, random));
  weights.final_norm = random({c.hidden_size}).add_(c.norm == NormKind::kRmsFromOne ? 0 : 1);
  if (c.norm == NormKind::kLayer) weights.final_norm_bias = random({c.hidden_size});
  weights.head = c.tied_embeddings ? weights.embedding : random({c.vocab_size, c.hidden_size});
  return weights;
}

inline at::Tensor norm(const ModelConfig& c, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  if (c.norm == NormKind::kLayer) return at::layer_norm(x, {x.size(-1)}, weight, bias, c.norm_eps);
  const at::Tensor unit = x * at::rsqrt(x.pow(2).mean(-1, true) + c.norm_eps);
  return c.norm == NormKind::kRms ? unit * weight : unit * (weight + 1);
}

// [T, dims/2] of each position. The scaled ones are RotaryTable's, which has tests of its own.
inline std::pair<at::Tensor, at::Tensor> cosines_and_sines(const ModelConfig& c, int64_t tokens) {
  const int64_t dims = c.rotary_dims();
  if (c.rope.scaling != RopeScaling::kNone) {
    const RotaryTable table(c, tokens);
    at::Tensor rows = at::empty({tokens, dims}, at::kFloat);
    for (int64_t t = 0; t < tokens; ++t) std::copy_n(table.row(t), dims, rows[t].mutable_data_ptr<float>());
    return {rows.slice(1, 0, dims / 2), rows.slice(1, dims / 2)};
  }
  const at::Tensor frequencies = at::pow(c.rope.theta, at::arange(0, dims, 2, at::kFloat) / dims).reciprocal();
  const at::Tensor angles = at::outer(at::arange(tokens, at::kFloat), frequencies);
  return {angles.cos(), angles.sin()};
}

// x [T, heads, D] -> rotated, transposed to [heads, T, D]
inline at::Tensor rotated(const ModelConfig& c, const at::Tensor& x) {
  if (c.learned_positions) return x.transpose(0, 1);
  const int64_t dims = c.rotary_dims(), half = dims / 2;
  const auto [cosines, sines] = cosines_and_sines(c, x.size(0));
  const at::Tensor cosine = at::cat({cosines, cosines}, 1).unsqueeze(1), sine = at::cat({sines, sines}, 1).unsqueeze(1);
  const at::Tensor head = x.slice(2, 0, dims);
  const at::Tensor turned = at::cat({-head.slice(2, half), head.slice(2, 0, half)}, 2);
  return at::cat({head * cosine + turned * sine, x.slice(2, dims)}, 2).transpose(0, 1);
}

struct Scores {
  double scale = 0;    // 0: 1 / sqrt(D)
  double softcap = 0;  // 0: none
  int64_t window = 0;  // 0: none
};

// queries [heads, T, D], keys and values [kv_heads, T, D] -> [T, heads D]
inline at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const Scores& scores = {}) {
  const int64_t group = q.size(0) / k.size(0), tokens = q.size(1);
  const double scale = scores.scale == 0 ? 1 / std::sqrt(static_cast<double>(q.size(2))) : scores.scale;
  at::Tensor raw = at::matmul(q, k.repeat_interleave(group, 0).transpose(1, 2)) * scale;
  if (scores.softcap > 0) raw = (raw / scores.softcap).tanh() * scores.softcap;
  const at::Tensor age = at::arange(tokens, at::kLong).unsqueeze(1) - at::arange(tokens, at::kLong);
  const at::Tensor unseen = scores.window > 0 ? age.lt(0).logical_or(age.ge(scores.window)) : age.lt(0);
  const at::Tensor weights = raw.masked_fill(unseen, -std::numeric_limits<double>::infinity()).softmax(-1);
  return at::matmul(weights, v.repeat_interleave(group, 0)).transpose(0, 1).reshape({tokens, -1});
}

inline at::Tensor attention_block(const ModelConfig& c, const LayerWeights& layer, int64_t index, const at::Tensor& x) {
  const auto projected = [&](const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& norm_weight) {
    const at::Tensor flat = at::linear(x, weight, bias), heads = flat.view({x.size(0), -1, c.head_dim});
    if (!norm_weight.defined()) return heads;
    return c.qk_norm == QkNorm::kHead ? norm(c, heads, norm_weight) : norm(c, flat, norm_weight).view_as(heads);
  };
  const at::Tensor q = rotated(c, projected(layer.query, layer.query_bias, layer.query_norm));
  const at::Tensor k = rotated(c, projected(layer.key, layer.key_bias, layer.key_norm));
  const at::Tensor v = projected(layer.value, layer.value_bias, {}).transpose(0, 1);
  const Scores scores = {.scale = c.attention_scale, .softcap = c.attention_softcap, .window = c.window_of(index)};
  return at::linear(attention(q, k, v, scores), layer.attention_output, layer.attention_output_bias);
}

inline at::Tensor activated(const ModelConfig& c, const at::Tensor& x) {
  if (c.activation == Activation::kSilu) return at::silu(x);
  return at::gelu(x, c.activation == Activation::kGeluTanh ? "tanh" : "none");
}

inline at::Tensor mlp_block(const ModelConfig& c, const LayerWeights& layer, const at::Tensor& x) {
  const at::Tensor up = at::linear(x, layer.up, layer.up_bias);
  const at::Tensor inner = c.gated_mlp ? activated(c, at::linear(x, layer.gate, layer.gate_bias)) * up : activated(c, up);
  return at::linear(inner, layer.down, layer.down_bias);
}

/// Logits [T,V] of every position of one sample, in the precision of the weights.
inline at::Tensor logits(const ModelConfig& c, const Weights& weights, const std::vector<int64_t>& tokens) {
  const bool before = c.norm_place != NormPlace::kAfter, after = c.norm_place != NormPlace::kBefore;
  at::Tensor x = at::embedding(weights.embedding, at::tensor(tokens, at::kLong)) * c.embedding_scale;
  if (c.learned_positions) x = x + weights.positions.slice(0, 0, x.size(0));
  for (int64_t i = 0; i < c.layers; ++i) {
    const LayerWeights& layer = weights.layers[static_cast<size_t>(i)];
    const at::Tensor mixed =
        attention_block(c, layer, i, before ? norm(c, x, layer.attention_norm, layer.attention_norm_bias) : x);
    x = x + (after ? norm(c, mixed, layer.attention_output_norm) : mixed);
    const at::Tensor made = mlp_block(c, layer, before ? norm(c, x, layer.mlp_norm, layer.mlp_norm_bias) : x);
    x = x + (after ? norm(c, made, layer.mlp_output_norm) : made);
  }
  const at::Tensor raw = at::linear(norm(c, x, weights.final_norm, weights.final_norm_bias), weights.head);
  return c.logit_softcap > 0 ? (raw / c.logit_softcap).tanh() * c.logit_softcap : raw;
}

/// The same values in double precision.
inline Weights in_double(const Weights& weights) {
  Weights wide = weights;
  for (const auto& [name, tensor] : weight_slots(wide))
    if (tensor->defined()) *tensor = tensor->to(at::kDouble);
  return wide;
}

}  // namespace sluice::models::reference
