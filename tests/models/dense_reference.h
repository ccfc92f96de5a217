#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/tensor.h>

#include <cstdint>
#include <vector>

#include "models/config.h"
#include "models/weights.h"

/// The oracle of the generation tests: a transformer out of ATen's own operators, dense, without a cache, recomputed for every
/// call.
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

inline Weights random_weights(const ModelConfig& c, double scale = 0.3) {
  const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, at::kFloat).mul_(scale); };
  Weights weights;
  weights.embedding = random({c.vocab_size, c.hidden_size});
  const int64_t queries = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
  for (int64_t i = 0; i < c.layers; ++i) {
    LayerWeights layer;
    layer.attention_norm = random({c.hidden_size}).add_(1);
    layer.query = random({queries, c.hidden_size});
    layer.key = random({keys, c.hidden_size});
    layer.value = random({keys, c.hidden_size});
    if (c.qkv_bias) {
      layer.query_bias = random({queries});
      layer.key_bias = random({keys});
      layer.value_bias = random({keys});
    }
    layer.attention_output = random({c.hidden_size, queries});
    layer.mlp_norm = random({c.hidden_size}).add_(1);
    layer.gate = random({c.intermediate_size, c.hidden_size});
    layer.up = random({c.intermediate_size, c.hidden_size});
    layer.down = random({c.hidden_size, c.intermediate_size});
    weights.layers.push_back(layer);
  }
  weights.final_norm = random({c.hidden_size}).add_(1);
  weights.head = c.tied_embeddings ? weights.embedding : random({c.vocab_size, c.hidden_size});
  return weights;
}

inline at::Tensor norm(const at::Tensor& x, const at::Tensor& weight, double epsilon) {
  return x * at::rsqrt(x.pow(2).mean(-1, true) + epsilon) * weight;
}

// x [T, heads, D] -> rotated, transposed to [heads, T, D]
inline at::Tensor rotated(const at::Tensor& x, double theta) {
  const int64_t dim = x.size(2), half = dim / 2;
  const at::Tensor frequencies = at::pow(theta, at::arange(0, dim, 2, at::kFloat) / dim).reciprocal();
  const at::Tensor angles = at::outer(at::arange(x.size(0), at::kFloat), frequencies);
  const at::Tensor both = at::cat({angles, angles}, 1).unsqueeze(1);
  const at::Tensor turned = at::cat({-x.slice(2, half), x.slice(2, 0, half)}, 2);
  return (x * both.cos() + turned * both.sin()).transpose(0, 1);
}

// queries [heads, T, D], keys and values [kv_heads, T, D] -> [T, heads D]
inline at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const int64_t group = q.size(0) / k.size(0);
  const at::Tensor out =
      at::scaled_dot_product_attention(q, k.repeat_interleave(group, 0), v.repeat_interleave(group, 0), {}, 0.0,
                                       /*is_causal=*/true);
  return out.transpose(0, 1).reshape({q.size(1), -1});
}

/// Logits [T,V] of every position of one sample.
inline at::Tensor logits(const ModelConfig& c, const Weights& weights, const std::vector<int64_t>& tokens) {
  at::Tensor x = at::embedding(weights.embedding, at::tensor(tokens, at::kLong));
  const auto heads = [&](const at::Tensor& y) { return y.view({y.size(0), -1, c.head_dim}); };
  for (const LayerWeights& layer : weights.layers) {
    const at::Tensor h = norm(x, layer.attention_norm, c.norm_eps);
    const at::Tensor q = rotated(heads(at::linear(h, layer.query, layer.query_bias)), c.rope.theta);
    const at::Tensor k = rotated(heads(at::linear(h, layer.key, layer.key_bias)), c.rope.theta);
    const at::Tensor v = heads(at::linear(h, layer.value, layer.value_bias)).transpose(0, 1);
    x = x + at::linear(attention(q, k, v), layer.attention_output);
    const at::Tensor m = norm(x, layer.mlp_norm, c.norm_eps);
    x = x + at::linear(at::silu(at::linear(m, layer.gate)) * at::linear(m, layer.up), layer.down);
  }
  return at::linear(norm(x, weights.final_norm, c.norm_eps), weights.head);
}

}  // namespace sluice::models::reference
