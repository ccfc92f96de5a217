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
namespace {

void check_routes(const ModelConfig& config, const at::Tensor& tokens, const at::Tensor& routes) {
  if (!routes.defined()) return;
  SLUICE_CHECK(config.experts.any() && routes.dim() == 2 && routes.is_contiguous() && routes.device().is_cpu() &&
                   routes.size(0) == tokens.size(0) && routes.size(1) == route_form(config).token_bytes(),
               "routes that do not fit the model or the tokens");
}

}  // namespace

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets,
                                      const at::Tensor& routes) const {
  SLUICE_CHECK(tokens.dim() == 1, "tokens must be int64 [T]");
  return hidden_states(tokens, sample_offsets, {.tokens = tokens.size(0)}, routes);
}

at::Tensor Transformer::hidden_states(const at::Tensor& tokens, std::span<const int64_t> sample_offsets, const Segment& segment,
                                      const at::Tensor& routes) const {
  SLUICE_CHECK(tokens.dim() == 1 && tokens.scalar_type() == at::kLong, "tokens must be int64 [T]");
  SLUICE_CHECK(!sample_offsets.empty() && sample_offsets.back() == segment.tokens, "the last sample must end at the last token");
  SLUICE_CHECK(tokens.size(0) == segment.size(), "a segment with the tokens of another one");
  const at::Tensor& embedding = weights_.embedding;
  SLUICE_CHECK(!embedding.defined() || embedding.scalar_type() == at::kFloat || !embedding.requires_grad(),
               "weights in a narrower dtype than float32 do not train");
  check_routes(config_, tokens, routes);
  const bool recomputes = compute_.checkpointing == ActivationCheckpointing::kLayer;
  if (!device().is_cpu()) {
    SLUICE_CHECK(segment.ring == 1 && !segment.shares_experts(), "a ring and shared-out experts are the CPU's");
    const at::Tensor there = routes.defined() ? routes.to(device()) : routes;
    return portable::hidden_states(config_, weights_, tokens, sample_offsets,
                                   {compute_.precision, recomputes, routers_, there, segment});
  }
  if (embedding.defined() && computes_narrow(embedding, compute_.precision)) {
    SLUICE_CHECK(segment.is_whole(), "a pass that is rounded everywhere is computed by one rank");
    return narrow_hidden_states(config_, weights_, tokens, sample_offsets, routes).to(at::kFloat);
  }
  const auto pass =
      std::make_shared<const LayerPass>(config_, sample_offsets, segment, compute_.precision, recomputes, routers_, routes);
  at::Tensor x = embed(config_, weights_, tokens, pass->layout, pass->precision);  // [n,H]
  for (size_t i = 0; i < weights_.layers.size(); ++i)
    x = decoder_layer(std::move(x), weights_.layers[i], static_cast<int64_t>(i), pass);
  return normalised(pass->norm(weights_.final_norm, weights_.final_norm_bias), x);
}

}  // namespace sluice::models
