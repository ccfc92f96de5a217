#include "models/transformer.h"

#include <ATen/ops/embedding.h>

#include "base/error.h"
#include "models/folder.h"
#include "models/gated_mlp.h"
#include "models/linear_layer.h"
#include "models/ragged_attention.h"
#include "models/rms_norm.h"

namespace sluice::models {
namespace {

using LayoutPointer = c10::intrusive_ptr<RaggedLayout>;

// x[T,H] + attention over normalised x
at::Tensor add_attention(const at::Tensor& x, const LayerWeights& layer, const LayoutPointer& layout, double eps) {
  const at::Tensor normed = rms_norm(x, layer.attention_norm, eps);              // [T,H]
  const at::Tensor query = linear_layer(normed, layer.query, layer.query_bias);  // [T,Nq*D]
  const at::Tensor key = linear_layer(normed, layer.key, layer.key_bias);        // [T,Nk*D]
  const at::Tensor value = linear_layer(normed, layer.value, layer.value_bias);  // [T,Nk*D]
  const at::Tensor attended = ragged_attention(query, key, value, layout);       // [T,Nq*D]
  return linear_layer_onto(x, attended, layer.attention_output);
}

}  // namespace

Transformer Transformer::load(const std::filesystem::path& folder, const LoadOptions& options) {
  return load_folder(folder, options);
}

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets) const {
  SLUICE_CHECK(tokens.dim() == 1 && tokens.scalar_type() == at::kLong, "tokens must be int64 [T]");
  SLUICE_CHECK(!sample_offsets.empty() && sample_offsets.back() == tokens.size(0), "the last sample must end at the last token");
  const auto layout = c10::make_intrusive<RaggedLayout>(config_, sample_offsets);
  at::Tensor x = at::embedding(weights_.embedding, tokens);  // [T,H]
  for (const LayerWeights& layer : weights_.layers) {
    x = add_attention(x, layer, layout, config_.norm_eps);
    x = gated_mlp(x, rms_norm(x, layer.mlp_norm, config_.norm_eps), layer.gate, layer.up, layer.down);
  }
  return rms_norm(x, weights_.final_norm, config_.norm_eps);
}

}  // namespace sluice::models
