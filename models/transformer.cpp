#include "models/transformer.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>

#include "base/error.h"
#include "models/folder/folder.h"
#include "models/training/linear_layer.h"
#include "models/training/mlp.h"
#include "models/training/narrow_forward.h"
#include "models/training/norm.h"
#include "models/training/ragged_attention.h"

namespace sluice::models {
namespace {

using LayoutPointer = c10::intrusive_ptr<RaggedLayout>;

at::Tensor normalised(const ModelConfig& config, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias = {}) {
  return norm(x, weight, bias, config.norm, config.norm_eps);
}

// Of queries or keys, [T,heads*D]: see QkNorm.
at::Tensor normalised_heads(const ModelConfig& config, const at::Tensor& x, const at::Tensor& weight) {
  if (config.qk_norm == QkNorm::kNone) return x;
  if (config.qk_norm == QkNorm::kProjection) return normalised(config, x, weight);
  return normalised(config, x.view({-1, config.head_dim}), weight).view(x.sizes());
}

// Position of each token in its sample: [T]
at::Tensor positions_of(const RaggedLayout& layout) {
  const at::Tensor positions = at::empty({layout.offsets.back()}, at::kLong);
  for (size_t s = 0; s + 1 < layout.offsets.size(); ++s) {
    const int64_t first = layout.offsets[s], count = layout.offsets[s + 1] - first;
    positions.narrow(0, first, count).copy_(at::arange(count));
  }
  return positions;
}

// The layers of one forward pass. Shapes as in weights.h; T tokens of all samples.
class Layers {
 public:
  Layers(const ModelConfig& config, LayoutPointer layout) : config_(config), layout_(std::move(layout)) {}

  // x[T,H] plus what attention makes of it
  at::Tensor add_attention(const at::Tensor& x, const LayerWeights& layer, int64_t index) const {
    const at::Tensor in = read(x, layer.attention_norm, layer.attention_norm_bias);  // [T,H]
    const LayerAdapters& adapters = layer.adapters;
    const at::Tensor query = linear_layer(in, layer.query, layer.query_bias, adapters.query);  // [T,Nq*D]
    const at::Tensor key = linear_layer(in, layer.key, layer.key_bias, adapters.key);          // [T,Nk*D]
    const at::Tensor value = linear_layer(in, layer.value, layer.value_bias, adapters.value);  // [T,Nk*D]
    const at::Tensor attended =
        ragged_attention(normalised_heads(config_, query, layer.query_norm), normalised_heads(config_, key, layer.key_norm),
                         value, layout_, config_.window_of(index));  // [T,Nq*D]
    const at::Tensor &weight = layer.attention_output, &bias = layer.attention_output_bias;
    if (!norms_output()) return linear_layer_onto(x, attended, weight, bias, adapters.attention_output);
    const at::Tensor out = linear_layer(attended, weight, bias, adapters.attention_output);
    return normalised(config_, out, layer.attention_output_norm).add_(x);
  }

  // x[T,H] plus what the MLP makes of it
  at::Tensor add_mlp(const at::Tensor& x, const LayerWeights& layer) const {
    const LayerAdapters& adapters = layer.adapters;
    const MlpWeights weights{layer.gate,      layer.up,      layer.down,  layer.gate_bias, layer.up_bias,
                             layer.down_bias, adapters.gate, adapters.up, adapters.down};
    const at::Tensor in = read(x, layer.mlp_norm, layer.mlp_norm_bias);  // [T,H]
    if (!norms_output()) return mlp(x, in, weights, config_.activation);
    return normalised(config_, mlp({}, in, weights, config_.activation), layer.mlp_output_norm).add_(x);
  }

 private:
  bool norms_output() const { return config_.norm_place != NormPlace::kBefore; }

  at::Tensor read(const at::Tensor& x, const at::Tensor& norm_weight, const at::Tensor& norm_bias) const {
    return config_.norm_place == NormPlace::kAfter ? x : normalised(config_, x, norm_weight, norm_bias);
  }

  const ModelConfig& config_;
  LayoutPointer layout_;
};

// x[T,H]: what the first layer reads, float32
at::Tensor embed(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens, const RaggedLayout& layout) {
  at::Tensor x = at::embedding(weights.embedding, tokens);
  if (config.embedding_scale != 1.0) x = x.mul_(config.embedding_scale);
  if (!config.learned_positions) return x;
  SLUICE_CHECK(layout.longest <= weights.positions.size(0), "a sample is longer than the table of positions");
  return x.add_(at::embedding(weights.positions, positions_of(layout)));
}

}  // namespace

Transformer Transformer::load(const std::filesystem::path& folder, const LoadOptions& options) {
  return load_folder(folder, options);
}

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets) const {
  SLUICE_CHECK(tokens.dim() == 1 && tokens.scalar_type() == at::kLong, "tokens must be int64 [T]");
  SLUICE_CHECK(!sample_offsets.empty() && sample_offsets.back() == tokens.size(0), "the last sample must end at the last token");
  SLUICE_CHECK(weights_.embedding.scalar_type() == at::kFloat || !weights_.embedding.requires_grad(),
               "weights in a narrower dtype than float32 do not train");
  if (at::isReducedFloatingType(weights_.embedding.scalar_type())) {
    return narrow_hidden_states(config_, weights_, tokens, sample_offsets).to(at::kFloat);
  }
  const auto layout = c10::make_intrusive<RaggedLayout>(config_, sample_offsets);
  const Layers layers(config_, layout);
  at::Tensor x = embed(config_, weights_, tokens, *layout);  // [T,H]
  for (size_t i = 0; i < weights_.layers.size(); ++i) {
    x = layers.add_attention(x, weights_.layers[i], static_cast<int64_t>(i));
    x = layers.add_mlp(x, weights_.layers[i]);
  }
  return normalised(config_, x, weights_.final_norm, weights_.final_norm_bias);
}

}  // namespace sluice::models
