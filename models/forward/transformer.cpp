#include "models/forward/transformer.h"

#include <memory>
#include <utility>

#include "base/error.h"
#include "models/layers/decoder_layer.h"
#include "models/layers/embedding.h"
#include "models/layers/layer_pass.h"
#include "models/layers/narrow_forward.h"
#include "models/layers/norm.h"
#include "models/portable/hidden_states.h"

namespace sluice::models {

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets) const {
  SLUICE_CHECK(tokens.dim() == 1, "tokens must be int64 [T]");
  return hidden_states(tokens, sample_offsets, {.tokens = tokens.size(0)});
}

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets,
                                      const Segment& segment) const {
  SLUICE_CHECK(tokens.dim() == 1 && tokens.scalar_type() == at::kLong, "tokens must be int64 [T]");
  SLUICE_CHECK(!sample_offsets.empty() && sample_offsets.back() == segment.tokens, "the last sample must end at the last token");
  SLUICE_CHECK(tokens.size(0) == segment.size(), "a segment with the tokens of another one");
  const at::Tensor& embedding = weights_.embedding;
  SLUICE_CHECK(!embedding.defined() || embedding.scalar_type() == at::kFloat || !embedding.requires_grad(),
               "weights in a narrower dtype than float32 do not train");
  const bool recomputes = compute_.checkpointing == ActivationCheckpointing::kLayer;
  SLUICE_CHECK(segment.is_whole() || device().is_cpu(), "ranks share passes on the CPU alone");
  if (!device().is_cpu())
    return portable::hidden_states(config_, weights_, tokens, sample_offsets, {compute_.precision, recomputes, routers_});
  if (embedding.defined() && computes_narrow(embedding, compute_.precision)) {
    SLUICE_CHECK(segment.is_whole(), "a pass that is rounded everywhere is computed by one rank");
    return narrow_hidden_states(config_, weights_, tokens, sample_offsets).to(at::kFloat);
  }
  const auto pass = std::make_shared<const LayerPass>(config_, sample_offsets, segment, compute_.precision, recomputes, routers_);
  at::Tensor x = embed(config_, weights_, tokens, pass->layout, pass->precision);  // [n,H]
  for (size_t i = 0; i < weights_.layers.size(); ++i)
    x = decoder_layer(std::move(x), weights_.layers[i], static_cast<int64_t>(i), pass);
  return normalised(pass->norm(weights_.final_norm, weights_.final_norm_bias), x);
}

}  // namespace sluice::models
