#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tanh.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "models/config/config.h"
#include "models/config/precision.h"
#include "models/kernels/rotary.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/feed_forward/mlp.h"
#include "models/layers/weights.h"

/// The oracle of the tests of transformers and generation: a transformer out of ATen's own operators with all that a ModelConfig
/// can say, dense, without a cache, recomputed for every call, differentiable.
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

struct NamedConfig {
  const char* name;
  ModelConfig config;
};

/// Every switch of a ModelConfig thrown at least once, as families throw them and in mixtures that none has. Windows are shorter
/// than 20 tokens, as are the samples that rotary positions were trained on.
inline std::vector<NamedConfig> configs_of_every_switch() {
  const auto changed = [](const auto& change) {
    ModelConfig config = small_config();
    change(config);
    return config;
  };
  const auto scaled = [&](RopeScaling scaling) {
    return changed([&](ModelConfig& c) {
      c.rope = {.theta = 100.0, .scaling = scaling, .factor = 3.0, .original_positions = 9, .attention_factor = 1.1};
      c.rope.short_factors = {1.0, 1.1, 1.3}, c.rope.long_factors = {1.0, 2.0, 5.0};
    });
  };
  return {
      {"plain", small_config()},
      {"tied", changed([](auto& c) { c.tied_embeddings = true, c.qkv_bias = true; })},
      {"biases", changed([](auto& c) { c.qkv_bias = c.attention_output_bias = c.mlp_bias = true; })},
      {"layer_norm_plain_mlp", changed([](auto& c) {
         c.norm = NormKind::kLayer, c.gated_mlp = false, c.activation = Activation::kGeluTanh, c.learned_positions = true;
         c.qkv_bias = c.attention_output_bias = c.mlp_bias = c.tied_embeddings = true;
       })},
      {"norms_on_both_sides_and_caps", changed([](auto& c) {
         c.norm = NormKind::kRmsFromOne, c.norm_place = NormPlace::kBoth, c.activation = Activation::kGeluTanh;
         c.attention_softcap = 2.0, c.logit_softcap = 3.0, c.attention_scale = 0.3, c.embedding_scale = 4.9;
         c.windows = {5, 0};
       })},
      {"norms_behind", changed([](auto& c) { c.norm_place = NormPlace::kAfter, c.qk_norm = QkNorm::kProjection; })},
      {"norms_behind_with_biases", changed([](auto& c) {
         c.norm_place = NormPlace::kAfter, c.attention_output_bias = c.mlp_bias = true;
         c.gated_mlp = false, c.activation = Activation::kGelu;
       })},
      {"norm_of_heads", changed([](auto& c) { c.qk_norm = QkNorm::kHead, c.qkv_bias = true; })},
      {"gelu_gate", changed([](auto& c) {
         c.activation = Activation::kGelu, c.windows = {1, 17};
       })},
      {"odd_heads_partly_rotary", changed([](auto& c) { c.head_dim = 7, c.rope.dims = 4; })},
      {"linear", scaled(RopeScaling::kLinear)},
      {"dynamic", scaled(RopeScaling::kDynamic)},
      {"yarn", scaled(RopeScaling::kYarn)},
      {"llama3", scaled(RopeScaling::kLlama3)},
      {"longrope", scaled(RopeScaling::kLongrope)},
      {"rotary_of_windows_and_norms_of_heads", changed([](auto& c) {
         c.layers = 3, c.windows = {5, 0, 5}, c.rope_of_layer = {1, 0, 1};
         c.rope = {.theta = 100.0, .scaling = RopeScaling::kLinear, .factor = 3.0, .original_positions = 9};
         c.more_ropes = {{.theta = 20.0, .dims = 4}};
         c.norm = NormKind::kRmsFromOne, c.norm_place = NormPlace::kBoth, c.qk_norm = QkNorm::kHead;
       })},
      {"a_layer_without_rotary_positions", changed([](auto& c) {
         c.rope_of_layer = {0, kNoRope};
       })},
      {"longrope_beside_plain_rotary", changed([](auto& c) {
         c.rope = {.theta = 100.0, .scaling = RopeScaling::kLongrope, .factor = 3.0, .original_positions = 9};
         c.rope.short_factors = {1.0, 1.1, 1.3}, c.rope.long_factors = {1.0, 2.0, 5.0};
         c.more_ropes = {{.theta = 100.0}}, c.rope_of_layer = {1, 0}, c.windows = {5, 0};
         c.norm_place = NormPlace::kAfter, c.qk_norm = QkNorm::kProjection;
       })},
      {"rotary_neighbours_between_norms",
       changed([](auto& c) { c.rotary_neighbours = true, c.rope.dims = 4, c.norm_place = NormPlace::kBoth, c.qkv_bias = true; })},
      {"experts", changed([](auto& c) {
         c.experts = {.count = 5, .per_token = 2, .size = 20, .normalised = true}, c.qk_norm = QkNorm::kHead;
       })},
      {"experts_with_a_shared_one", changed([](auto& c) {
         c.experts = {.count = 7, .per_token = 3, .size = 12, .shared_size = 28}, c.qkv_bias = c.tied_embeddings = true;
       })},
      {"experts_between_norms", changed([](auto& c) {
         c.experts = {.count = 3, .per_token = 1, .size = 36}, c.norm_place = NormPlace::kBoth;
         c.activation = Activation::kGeluTanh;
       })},
      {"experts_in_every_second_layer", changed([](auto& c) {
         c.layers = 4, c.experts = {.count = 6, .per_token = 2, .size = 20, .shared_size = 28, .dense_layers = {0, 2}};
         c.qkv_bias = true;
       })},
      {"a_wide_mlp_behind_experts", changed([](auto& c) {
         c.experts = {.count = 3, .per_token = 1, .size = 12, .normalised = true, .dense_layers = {1}};
         c.intermediate_size = 120, c.mlp_bias = c.tied_embeddings = true, c.qk_norm = QkNorm::kHead;
       })},
  };
}

inline bool has_experts(const ModelConfig& c, int64_t layer) {
  return c.experts.count > 0 && std::ranges::count(c.experts.dense_layers, layer) == 0;
}

/// How the weights of a layer that is no MLP are named, which has only matrices.
inline std::shared_ptr<const Network> network_of(const ModelConfig& c, int64_t layer) {
  if (!has_experts(c, layer)) return nullptr;
  const FeedForward& kind = feed_forward_of(c, layer);
  return std::make_shared<const Network>(Network{&kind, kind.tensors(c)});
}

inline LayerWeights random_layer(const ModelConfig& c, int64_t index, double scale) {
  const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, at::kFloat).mul_(scale); };
  const auto if_there = [&](bool there, at::IntArrayRef shape) { return there ? random(shape) : at::Tensor(); };
  const double at_rest = c.norm == NormKind::kRmsFromOne ? 0.0 : 1.0;
  const auto norm = [&](bool there, int64_t size) { return there ? random({size}).add_(at_rest) : at::Tensor(); };
  const int64_t H = c.hidden_size, I = c.intermediate_size, queries = c.heads * c.head_dim, keys = c.kv_heads * c.head_dim;
  const bool before = c.norm_place != NormPlace::kAfter, after = c.norm_place != NormPlace::kBefore;
  const bool shifts = before && c.norm == NormKind::kLayer, heads = c.qk_norm == QkNorm::kHead;
  LayerWeights layer;
  layer.feed_forward.resize(Mlp::kLinears);
  layer.attention_norm = norm(before, H);
  layer.attention_norm_bias = if_there(shifts, {H});
  layer.query.weight = random({queries, H});
  layer.key.weight = random({keys, H});
  layer.value.weight = random({keys, H});
  layer.query.bias = if_there(c.qkv_bias, {queries});
  layer.key.bias = if_there(c.qkv_bias, {keys});
  layer.value.bias = if_there(c.qkv_bias, {keys});
  layer.query_norm = norm(c.qk_norm != QkNorm::kNone, heads ? c.head_dim : queries);
  layer.key_norm = norm(c.qk_norm != QkNorm::kNone, heads ? c.head_dim : keys);
  layer.attention_output.weight = random({H, queries});
  layer.attention_output.bias = if_there(c.attention_output_bias, {H});
  layer.attention_output_norm = norm(after, H);
  layer.feed_forward_norm = norm(before, H);
  layer.feed_forward_norm_bias = if_there(shifts, {H});
  layer.feed_forward_output_norm = norm(after, H);
  layer.network = network_of(c, index);
  if (layer.network) {
    layer.feed_forward.resize(layer.network->tensors.size());
    for (const NetworkTensor& tensor : layer.network->tensors) layer.feed_forward[tensor.linear].weight = random(tensor.shape);
    return layer;
  }
  layer.feed_forward[Mlp::kGate].weight = if_there(c.gated_mlp, {I, H});
  layer.feed_forward[Mlp::kUp].weight = random({I, H});
  layer.feed_forward[Mlp::kDown].weight = random({H, I});
  layer.feed_forward[Mlp::kGate].bias = if_there(c.gated_mlp && c.mlp_bias, {I});
  layer.feed_forward[Mlp::kUp].bias = if_there(c.mlp_bias, {I});
  layer.feed_forward[Mlp::kDown].bias = if_there(c.mlp_bias, {H});
  return layer;
}

inline Weights random_weights(const ModelConfig& c, double scale = 0.3) {
  const auto random = [&](at::IntArrayRef shape) { return at::randn(shape, at::kFloat).mul_(scale); };
  Weights weights;
  weights.embedding = random({c.vocab_size, c.hidden_size});
  if (c.learned_positions) weights.positions = random({c.max_positions, c.hidden_size});
  for (int64_t i = 0; i < c.layers; ++i) weights.layers.push_back(random_layer(c, i, scale));
  weights.final_norm = random({c.hidden_size}).add_(c.norm == NormKind::kRmsFromOne ? 0.0 : 1.0);
  if (c.norm == NormKind::kLayer) weights.final_norm_bias = random({c.hidden_size});
  weights.head = c.tied_embeddings ? weights.embedding : random({c.vocab_size, c.hidden_size});
  return weights;
}

/// The same with all operands rounded to bfloat16 before: matrices of layers, embedding and head. Tied ones stay tied.
inline Weights with_narrow_operands(Weights weights) {
  const bool tied = weights.head.is_same(weights.embedding);
  for (LayerWeights& layer : weights.layers) {
    for (LinearWeights* linear : layer.linears()) {
      if (linear->weight.defined()) linear->weight = linear->weight.detach().to(at::kBFloat16);
    }
  }
  weights.embedding = weights.embedding.detach().to(at::kBFloat16);
  weights.head = tied ? weights.embedding : weights.head.detach().to(at::kBFloat16);
  return weights;
}

struct NamedTensor {
  std::string name;
  at::Tensor* tensor;
};

/// Every tensor that `weights` has, a tied one once.
inline std::vector<NamedTensor> tensors_of(Weights& weights) {
  std::vector<NamedTensor> all{{"embedding", &weights.embedding},
                               {"positions", &weights.positions},
                               {"final_norm", &weights.final_norm},
                               {"final_norm_bias", &weights.final_norm_bias},
                               {"value_head", &weights.value_head}};
  if (!weights.head.is_same(weights.embedding)) all.push_back({"head", &weights.head});
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    LayerWeights& l = weights.layers[i];
    std::vector<NamedTensor> of_layer{{"attention_norm", &l.attention_norm},
                                      {"attention_norm_bias", &l.attention_norm_bias},
                                      {"query", &l.query.weight},
                                      {"key", &l.key.weight},
                                      {"value", &l.value.weight},
                                      {"query_bias", &l.query.bias},
                                      {"key_bias", &l.key.bias},
                                      {"value_bias", &l.value.bias},
                                      {"query_norm", &l.query_norm},
                                      {"key_norm", &l.key_norm},
                                      {"attention_output", &l.attention_output.weight},
                                      {"attention_output_bias", &l.attention_output.bias},
                                      {"attention_output_norm", &l.attention_output_norm},
                                      {"feed_forward_norm", &l.feed_forward_norm},
                                      {"feed_forward_norm_bias", &l.feed_forward_norm_bias},
                                      {"feed_forward_output_norm", &l.feed_forward_output_norm}};
    for (size_t j = 0; j < l.feed_forward.size(); ++j) {
      of_layer.push_back({"matrix " + std::to_string(j), &l.feed_forward[j].weight});
      of_layer.push_back({"bias " + std::to_string(j), &l.feed_forward[j].bias});
    }
    for (const NamedTensor& named : of_layer) all.push_back({named.name + " of layer " + std::to_string(i), named.tensor});
  }
  std::erase_if(all, [](const NamedTensor& named) { return !named.tensor->defined(); });
  return all;
}

inline at::Tensor norm(const ModelConfig& c, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  if (c.norm == NormKind::kLayer) return at::layer_norm(x, {x.size(-1)}, weight, bias, c.norm_eps);
  const at::Tensor factor = c.norm == NormKind::kRmsFromOne ? weight + 1.0 : weight;
  return x * at::rsqrt(x.pow(2).mean(-1, true) + c.norm_eps) * factor;
}

// Of all positions of a sample: [T, dims/2]. Scaled angles have an oracle of their own, rotary_test.cpp.
inline std::pair<at::Tensor, at::Tensor> cosines_and_sines(const ModelConfig& c, int64_t rope, int64_t tokens) {
  const int64_t dims = c.rotary_dims(rope);
  if (c.rope_at(rope).scaling != RopeScaling::kNone) {
    const RotaryTable table(c, tokens, rope);
    const at::Tensor rows = at::from_blob(const_cast<float*>(table.row(0)), {tokens, dims}).clone();
    return {rows.slice(1, 0, dims / 2), rows.slice(1, dims / 2)};
  }
  const at::Tensor frequencies = at::pow(c.rope_at(rope).theta, at::arange(0, dims, 2, at::kFloat) / dims).reciprocal();
  const at::Tensor angles = at::outer(at::arange(tokens, at::kFloat), frequencies);
  return {angles.cos(), angles.sin()};
}

// x [T, heads, D] -> its first rotary_dims() rotated as a layer's are, transposed to [heads, T, D]
inline at::Tensor rotated(const ModelConfig& c, int64_t layer, const at::Tensor& x) {
  const int64_t rope = c.rope_index(layer);
  if (rope == kNoRope) return x.transpose(0, 1);
  const int64_t dims = c.rotary_dims(rope), half = dims / 2;
  const auto [cosines, sines] = cosines_and_sines(c, rope, x.size(0));
  const at::Tensor cosine = cosines.unsqueeze(1), sine = sines.unsqueeze(1);
  const int64_t step = c.rotary_neighbours ? 2 : 1, b_begin = c.rotary_neighbours ? 1 : half;
  const at::Tensor a = x.slice(2, 0, c.rotary_neighbours ? dims : half, step), b = x.slice(2, b_begin, dims, step);
  const at::Tensor first = a * cosine - b * sine, second = b * cosine + a * sine;
  const at::Tensor first_dims = c.rotary_neighbours ? at::stack({first, second}, 3).flatten(2) : at::cat({first, second}, 2);
  return at::cat({first_dims, x.slice(2, dims)}, 2).transpose(0, 1);
}

struct AttentionMaths {
  double scale = 0;  // 0: 1 / sqrt(D)
  double softcap = 0;
  int64_t window = 0;
  Precision precision = Precision::kFloat32;
};

/// As a product reads it: in bfloat16 rounded once.
inline at::Tensor operand(Precision precision, const at::Tensor& x) {
  return precision == Precision::kFloat32 ? x : x.to(at::kBFloat16).to(x.scalar_type());
}

inline at::Tensor capped(const at::Tensor& x, double softcap) { return softcap == 0 ? x : at::tanh(x / softcap) * softcap; }

// queries [heads, T, D], keys and values [kv_heads, T, D] -> [T, heads D]. In bfloat16 what is multiplied with values is rounded,
// e^(score - largest score), and not its sum.
inline at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionMaths& maths = {}) {
  const int64_t group = q.size(0) / k.size(0), tokens = q.size(1);
  const double scale = maths.scale == 0 ? 1.0 / std::sqrt(static_cast<double>(q.size(2))) : maths.scale;
  const at::Tensor keys = k.repeat_interleave(group, 0), values = v.repeat_interleave(group, 0);
  if (maths.softcap == 0 && maths.window == 0 && maths.precision == Precision::kFloat32) {
    const at::Tensor out = at::scaled_dot_product_attention(q, keys, values, {}, 0.0, /*is_causal=*/true, scale);
    return out.transpose(0, 1).reshape({tokens, -1});
  }
  at::Tensor hidden = at::ones({tokens, tokens}, at::kBool).triu(1);
  if (maths.window > 0) hidden = hidden.logical_or(at::ones({tokens, tokens}, at::kBool).tril(-maths.window));
  const at::Tensor scores = capped(at::matmul(q, keys.transpose(1, 2)) * scale, maths.softcap);
  const at::Tensor seen = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor shares = (seen - seen.amax(2, true)).exp();
  const at::Tensor mixed = at::matmul(operand(maths.precision, shares), values) / shares.sum(2, true);
  return mixed.transpose(0, 1).reshape({tokens, -1});
}

inline at::Tensor product(Precision precision, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  return at::linear(operand(precision, x), operand(precision, weight), bias);
}

// What attention adds to the residual stream x [T,H].
inline at::Tensor attended(const ModelConfig& c, const LayerWeights& layer, int64_t index, const at::Tensor& x,
                           Precision precision = Precision::kFloat32) {
  const auto heads = [&](const at::Tensor& y, const at::Tensor& weight) {
    const at::Tensor normed = c.qk_norm == QkNorm::kProjection ? norm(c, y, weight) : y;
    const at::Tensor apart = normed.view({y.size(0), -1, c.head_dim});
    return c.qk_norm == QkNorm::kHead ? norm(c, apart, weight) : apart;
  };
  const at::Tensor in = c.norm_place == NormPlace::kAfter ? x : norm(c, x, layer.attention_norm, layer.attention_norm_bias);
  const at::Tensor q = rotated(c, index, heads(product(precision, in, layer.query.weight, layer.query.bias), layer.query_norm));
  const at::Tensor k = rotated(c, index, heads(product(precision, in, layer.key.weight, layer.key.bias), layer.key_norm));
  const at::Tensor v =
      product(precision, in, layer.value.weight, layer.value.bias).view({x.size(0), -1, c.head_dim}).transpose(0, 1);
  const AttentionMaths maths{c.attention_scale, c.attention_softcap, c.window_of(index), precision};
  const at::Tensor mixed = attention(operand(precision, q), operand(precision, k), operand(precision, v), maths);
  const at::Tensor out = product(precision, mixed, layer.attention_output.weight, layer.attention_output.bias);
  return c.norm_place == NormPlace::kBefore ? out : norm(c, out, layer.attention_output_norm);
}

inline at::Tensor activated(const ModelConfig& c, const at::Tensor& x) {
  if (c.activation == Activation::kSilu) return at::silu(x);
  return at::gelu(x, c.activation == Activation::kGelu ? "none" : "tanh");
}

// Every expert computes every token; those that a token is not sent to count nothing for it.
inline at::Tensor mixed(const ModelConfig& c, const LayerWeights& layer, const at::Tensor& in, Precision precision) {
  const ExpertsConfig& experts = c.experts;
  const auto linear = [&](const at::Tensor& x, size_t place) { return product(precision, x, layer.feed_forward[place].weight); };
  const auto expert = [&](size_t first) { return linear(activated(c, linear(in, first)) * linear(in, first + 1), first + 2); };
  const at::Tensor shares = at::softmax(linear(in, 0), 1);
  const auto [values, places] = at::topk(shares, experts.per_token, 1);
  const at::Tensor weights = experts.normalised ? values / values.sum(1, true) : values;
  const at::Tensor counts = at::zeros_like(shares).scatter(1, places, weights);  // [T,E]
  at::Tensor out = at::zeros_like(in);
  const auto count = static_cast<size_t>(experts.count);
  for (size_t e = 0; e < count; ++e) out = out + counts.narrow(1, static_cast<int64_t>(e), 1) * expert(1 + 3 * e);
  if (experts.shared_size == 0) return out;
  return out + at::sigmoid(linear(in, 4 + 3 * count)) * expert(1 + 3 * count);
}

// What the feed-forward network adds to the residual stream x [T,H].
inline at::Tensor fed_forward(const ModelConfig& c, const LayerWeights& layer, int64_t index, const at::Tensor& x,
                              Precision precision = Precision::kFloat32) {
  const at::Tensor in = c.norm_place == NormPlace::kAfter ? x : norm(c, x, layer.feed_forward_norm, layer.feed_forward_norm_bias);
  const auto added = [&](const at::Tensor& out) {
    return c.norm_place == NormPlace::kBefore ? out : norm(c, out, layer.feed_forward_output_norm);
  };
  if (has_experts(c, index)) return added(mixed(c, layer, in, precision));
  const at::Tensor up = product(precision, in, layer.feed_forward[Mlp::kUp].weight, layer.feed_forward[Mlp::kUp].bias);
  const auto gate = [&] {
    return activated(c, product(precision, in, layer.feed_forward[Mlp::kGate].weight, layer.feed_forward[Mlp::kGate].bias));
  };
  const at::Tensor out = product(precision, c.gated_mlp ? gate() * up : activated(c, up), layer.feed_forward[Mlp::kDown].weight,
                                 layer.feed_forward[Mlp::kDown].bias);
  return added(out);
}

/// Logits [T,V] of every position of one sample. In bfloat16 the operands of products and embedded tokens are rounded, and
/// nothing else.
inline at::Tensor logits(const ModelConfig& c, const Weights& weights, const std::vector<int64_t>& tokens,
                         Precision precision = Precision::kFloat32) {
  at::Tensor x = operand(precision, at::embedding(weights.embedding, at::tensor(tokens, at::kLong))) * c.embedding_scale;
  if (c.learned_positions) x = x + weights.positions.slice(0, 0, x.size(0));
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    x = x + attended(c, weights.layers[i], static_cast<int64_t>(i), x, precision);
    x = x + fed_forward(c, weights.layers[i], static_cast<int64_t>(i), x, precision);
  }
  const at::Tensor hidden = norm(c, x, weights.final_norm, weights.final_norm_bias);
  return capped(product(precision, hidden, weights.head), c.logit_softcap);
}

/// A copy that is trained, on a device.
inline Weights leaves(const Weights& weights, at::Device device = at::kCPU) {
  Weights own = weights.clone().to(device);
  for (const NamedTensor& named : tensors_of(own)) named.tensor->set_requires_grad(true);
  return own;
}

/// The same values in double precision.
inline Weights in_double(const Weights& weights) {
  Weights wide = weights;
  const bool tied = wide.head.is_same(wide.embedding);
  for (const NamedTensor& named : tensors_of(wide)) *named.tensor = named.tensor->to(at::kDouble);
  if (tied) wide.head = wide.embedding;
  return wide;
}

}  // namespace sluice::models::reference
