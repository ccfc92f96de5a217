#include "models/decoder.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "models/kernels_elementwise.h"
#include "models/kernels_linear.h"

namespace sluice::models {
namespace {

const float* floats(const at::Tensor& tensor) {
  SLUICE_CHECK(tensor.defined() && tensor.scalar_type() == at::kFloat && tensor.is_cpu() && tensor.is_contiguous(),
               "generation needs contiguous float32 weights on the CPU");
  return tensor.const_data_ptr<float>();
}

void ensure(std::vector<float>& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(static_cast<size_t>(size));
}

}  // namespace

Decoder::Decoder(const ModelConfig& config)
    : config_(config), rotary_(config, config.steady_positions()) {}

std::span<const float> Decoder::step(const Weights& weights, KvCache& cache, std::span<const DecodeSequence> sequences) {
  sequences_.clear();
  tokens_ = 0;
  for (const DecodeSequence& sequence : sequences) {
    const int64_t added = static_cast<int64_t>(sequence.tokens.size()), end = sequence.cached + added;
    SLUICE_CHECK(added > 0 && end <= config_.max_positions, "a sequence without new tokens or past the model's positions");
    SLUICE_CHECK(cache.blocks_for(end) <= static_cast<int64_t>(sequence.blocks.size()), "a sequence without room in its blocks");
    sequences_.push_back({.cached = sequence.cached, .new_tokens = added, .blocks = sequence.blocks});
    tokens_ += added;
  }
  if (sequences.empty()) return {};
  embed(weights, sequences);
  for (int64_t layer = 0; layer < config_.layers; ++layer) {
    attention(weights.layers[layer], layer, cache);
    mlp(weights.layers[layer]);
  }
  return logits(weights, sequences);
}

void Decoder::embed(const Weights& weights, std::span<const DecodeSequence> sequences) {
  const int64_t size = config_.hidden_size;
  ensure(hidden_, tokens_ * size);
  const float* table = floats(weights.embedding);
  float* row = hidden_.data();
  for (const DecodeSequence& sequence : sequences)
    for (const int64_t token : sequence.tokens) {
      SLUICE_CHECK(token >= 0 && token < config_.vocab_size, "a token id outside the vocabulary");
      std::memcpy(row, table + token * size, size * sizeof(float));
      row += size;
    }
}

void Decoder::attention(const LayerWeights& layer, int64_t index, KvCache& cache) {
  const int64_t dim = config_.head_dim, queries = config_.heads * dim, keys = config_.kv_heads * dim, width = queries + 2 * keys;
  ensure(normed_, tokens_ * config_.hidden_size);
  ensure(qkv_, tokens_ * width);
  ensure(attended_, tokens_ * queries);
  rms_norm(hidden_.data(), floats(layer.attention_norm), config_.norm_eps, tokens_, config_.hidden_size, normed_.data());
  project(layer.query, normed_.data(), qkv_.data(), width);
  project(layer.key, normed_.data(), qkv_.data() + queries, width);
  project(layer.value, normed_.data(), qkv_.data() + queries + keys, width);
  rotate_and_cache(cache, index, config_.heads, sequences_, rotary_, joined_bias(layer), qkv_.data());
  paged_attention(cache, index, config_.heads, sequences_, qkv_.data(), width, attended_.data());
  project(layer.attention_output, attended_.data(), hidden_.data(), config_.hidden_size, true);
}

void Decoder::mlp(const LayerWeights& layer) {
  const int64_t size = config_.intermediate_size;
  ensure(gate_up_, 2 * tokens_ * size);
  float* gate = gate_up_.data();
  float* up = gate + tokens_ * size;
  rms_norm(hidden_.data(), floats(layer.mlp_norm), config_.norm_eps, tokens_, config_.hidden_size, normed_.data());
  project(layer.gate, normed_.data(), gate, size);
  project(layer.up, normed_.data(), up, size);
  swiglu(gate, up, size, tokens_, size);
  project(layer.down, gate, hidden_.data(), config_.hidden_size, true);
}

std::span<const float> Decoder::logits(const Weights& weights, std::span<const DecodeSequence> sequences) {
  const int64_t size = config_.hidden_size;
  int64_t rows = 0, end = 0;
  for (const DecodeSequence& sequence : sequences) {
    end += static_cast<int64_t>(sequence.tokens.size());
    if (!sequence.wants_logits) continue;
    std::memmove(hidden_.data() + rows++ * size, hidden_.data() + (end - 1) * size, size * sizeof(float));
  }
  rms_norm(hidden_.data(), floats(weights.final_norm), config_.norm_eps, rows, size, normed_.data());
  ensure(logits_, rows * config_.vocab_size);
  tokens_ = rows;
  project(weights.head, normed_.data(), logits_.data(), config_.vocab_size);
  return {logits_.data(), static_cast<size_t>(rows * config_.vocab_size)};
}

const float* Decoder::joined_bias(const LayerWeights& layer) {
  if (!layer.query_bias.defined()) return nullptr;
  bias_.clear();
  for (const at::Tensor* part : {&layer.query_bias, &layer.key_bias, &layer.value_bias})
    bias_.insert(bias_.end(), floats(*part), floats(*part) + part->numel());
  return bias_.data();
}

void Decoder::project(const at::Tensor& weight, const float* x, float* out, int64_t out_stride, bool accumulate) const {
  linear({.x = x,
          .x_stride = weight.size(1),
          .weight = floats(weight),
          .out = out,
          .out_stride = out_stride,
          .rows = tokens_,
          .inputs = weight.size(1),
          .outputs = weight.size(0),
          .accumulate = accumulate});
}

}  // namespace sluice::models
