#include "models/generation/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/kernels/kernels_linear.h"

namespace sluice::models {
namespace {

constexpr int64_t kFirstPositions = 1024;  // of the first rotary table

const float* floats(const at::Tensor& tensor) {
  SLUICE_CHECK(tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.is_cpu() && tensor.is_contiguous(),
               "generation needs contiguous float32 weights on the CPU");
  return tensor.const_data_ptr<float>();
}

void ensure(std::vector<float>& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(static_cast<size_t>(size));
}

const float* floats_or_null(const at::Tensor& tensor) { return tensor.defined() ? floats(tensor) : nullptr; }

}  // namespace

Decoder::Decoder(const ModelConfig& config) : config_(config) {}

std::span<const float> Decoder::step(const Weights& weights, KvCache& cache, std::span<const DecodeSequence> sequences) {
  sequences_.clear();
  tokens_ = 0;
  int64_t longest = 0;
  for (const DecodeSequence& sequence : sequences) {
    const int64_t added = static_cast<int64_t>(sequence.tokens.size()), end = sequence.cached + added;
    SLUICE_CHECK(added > 0 && end <= config_.steady_positions(), "a sequence without new tokens or past the model's positions");
    SLUICE_CHECK(cache.blocks_for(end) <= static_cast<int64_t>(sequence.blocks.size()), "a sequence without room in its blocks");
    sequences_.push_back({.cached = sequence.cached, .new_tokens = added, .blocks = sequence.blocks});
    tokens_ += added;
    longest = std::max(longest, end);
  }
  if (sequences.empty()) return {};
  reach(longest);
  embed(weights, sequences);
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    attention(weights.layers[layer], layer, cache);
    mlp(weights.layers[layer]);
  }
  return logits(weights, sequences);
}

// Angles of the positions up to steady_positions() are the same in every table that has them.
void Decoder::reach(int64_t positions) {
  const int64_t have = rotary_ ? rotary_->positions() : 0;
  if (config_.learned_positions || positions <= have) return;
  rotary_.emplace(config_, std::min(config_.steady_positions(), std::max({positions, 2 * have, kFirstPositions})));
}

void Decoder::embed(const Weights& weights, std::span<const DecodeSequence> sequences) {
  const int64_t size = config_.hidden_size;
  ensure(hidden_, tokens_ * size);
  const float* table = floats(weights.embedding);
  const float* positions = config_.learned_positions ? floats(weights.positions) : nullptr;
  const auto scale = static_cast<float>(config_.embedding_scale);
  float* row = hidden_.data();
  for (const DecodeSequence& sequence : sequences) {
    int64_t position = sequence.cached;
    for (const int64_t token : sequence.tokens) {
      SLUICE_CHECK(token >= 0 && token < config_.vocab_size, "a token id outside the vocabulary");
      const float* embedding = table + token * size;
      const float* of_position = positions ? positions + position * size : nullptr;
      for (int64_t i = 0; i < size; ++i) row[i] = embedding[i] * scale + (of_position ? of_position[i] : 0.0f);
      row += size;
      ++position;
    }
  }
}

void Decoder::attention(const LayerWeights& layer, int64_t index, KvCache& cache) {
  const int64_t dim = config_.head_dim, queries = config_.heads * dim, keys = config_.kv_heads * dim, width = queries + 2 * keys;
  ensure(qkv_, tokens_ * width);
  ensure(attended_, tokens_ * queries);
  const float* x = read(layer.attention_norm, layer.attention_norm_bias);
  project({layer.query, layer.query_bias}, x, qkv_.data(), width);
  project({layer.key, layer.key_bias}, x, qkv_.data() + queries, width);
  project({layer.value, layer.value_bias}, x, qkv_.data() + queries + keys, width);
  const bool normed = config_.qk_norm != QkNorm::kNone;
  prepare_heads({.cache = cache,
                 .layer = index,
                 .heads = config_.heads,
                 .sequences = sequences_,
                 .rotary = rotary_ ? &*rotary_ : nullptr,
                 .qk_norm = config_.qk_norm,
                 .query_norm = normed ? norm(layer.query_norm, {}) : RowNorm{},
                 .key_norm = normed ? norm(layer.key_norm, {}) : RowNorm{},
                 .qkv = qkv_.data()});
  const PagedScores scores = {.scale = static_cast<float>(config_.score_scale()),
                              .softcap = static_cast<float>(config_.attention_softcap),
                              .window = config_.window_of(index)};
  paged_attention(cache, index, config_.heads, scores, sequences_, qkv_.data(), width, attended_.data());
  add({layer.attention_output, layer.attention_output_bias}, attended_.data(), layer.attention_output_norm);
}

void Decoder::mlp(const LayerWeights& layer) {
  const int64_t size = config_.intermediate_size;
  ensure(gate_up_, (config_.gated_mlp ? 2 : 1) * tokens_ * size);
  float* inner = gate_up_.data();
  float* up = config_.gated_mlp ? inner + tokens_ * size : nullptr;
  const float* x = read(layer.mlp_norm, layer.mlp_norm_bias);
  if (config_.gated_mlp) {
    project({layer.gate, layer.gate_bias}, x, inner, size);
    project({layer.up, layer.up_bias}, x, up, size);
  } else {
    project({layer.up, layer.up_bias}, x, inner, size);
  }
  activate(config_.activation, inner, up, size, tokens_, size);
  add({layer.down, layer.down_bias}, inner, layer.mlp_output_norm);
}

std::span<const float> Decoder::logits(const Weights& weights, std::span<const DecodeSequence> sequences) {
  const int64_t size = config_.hidden_size;
  int64_t rows = 0, end = 0;
  for (const DecodeSequence& sequence : sequences) {
    end += static_cast<int64_t>(sequence.tokens.size());
    if (!sequence.wants_logits) continue;
    std::memmove(hidden_.data() + rows++ * size, hidden_.data() + (end - 1) * size, size * sizeof(float));
  }
  tokens_ = rows;
  ensure(logits_, rows * config_.vocab_size);
  normalize(norm(weights.final_norm, weights.final_norm_bias), hidden_.data(), rows, size, normed_.data());
  project({weights.head, {}}, normed_.data(), logits_.data(), config_.vocab_size);
  if (config_.logit_softcap > 0) soft_cap(logits_.data(), rows * config_.vocab_size, config_.logit_softcap);
  return {logits_.data(), static_cast<size_t>(rows * config_.vocab_size)};
}

RowNorm Decoder::norm(const at::Tensor& weight, const at::Tensor& bias) const {
  return {.kind = config_.norm, .weight = floats(weight), .bias = floats_or_null(bias), .epsilon = config_.norm_eps};
}

// What attention or the MLP reads of the residual stream.
const float* Decoder::read(const at::Tensor& norm_weight, const at::Tensor& norm_bias) {
  ensure(normed_, tokens_ * config_.hidden_size);
  if (config_.norm_place == NormPlace::kAfter) return hidden_.data();
  normalize(norm(norm_weight, norm_bias), hidden_.data(), tokens_, config_.hidden_size, normed_.data());
  return normed_.data();
}

// Adds what attention or the MLP makes of x to the residual stream.
void Decoder::add(const Projection& projection, const float* x, const at::Tensor& norm_weight) {
  const int64_t size = config_.hidden_size;
  if (config_.norm_place == NormPlace::kBefore) return project(projection, x, hidden_.data(), size, true);
  project(projection, x, normed_.data(), size);
  normalize(norm(norm_weight, {}), normed_.data(), tokens_, size, normed_.data());
  for (int64_t i = 0; i < tokens_ * size; ++i) hidden_[i] += normed_[i];
}

void Decoder::project(const Projection& projection, const float* x, float* out, int64_t out_stride, bool accumulate) const {
  const at::Tensor& weight = projection.weight;
  linear({.x = x,
          .x_stride = weight.size(1),
          .weight = floats(weight),
          .bias = floats_or_null(projection.bias),
          .out = out,
          .out_stride = out_stride,
          .rows = tokens_,
          .inputs = weight.size(1),
          .outputs = weight.size(0),
          .accumulate = accumulate});
}

}  // namespace sluice::models
