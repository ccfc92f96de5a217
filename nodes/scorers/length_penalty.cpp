#include "nodes/scorers/length_penalty.h"

#include <algorithm>

#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

using engine::Range;

void LengthPenalty::describe(engine::Contract<LengthPenaltyParams>& c) {
  using P = LengthPenaltyParams;
  c.type("length_penalty", "a penalty for samples of many tokens");
  c.param("shape", &P::shape)
      .doc("soft_overlong: 0 up to max_tokens - cache_tokens, then down to -1; linear: -length / max_tokens");
  c.param("max_tokens", &P::max_tokens).required().at_least(1).unit("tokens").doc("sampled tokens at which the penalty is -1");
  c.param("cache_tokens", &P::cache_tokens)
      .at_least(0)
      .unit("tokens")
      .doc("soft_overlong: sampled tokens over which the penalty grows from 0 to -1");
  c.param("writes", &P::writes).doc("the column of the scores");
  c.writes_named(&P::writes, engine::DType::kFloat32, engine::Extent::kSample);
  describe_scores(c);
  describe_score_metric(c, "penalised", engine::Metric::kMean, "share of the samples with a penalty");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.shape == PenaltyShape::kLinear && params.cache_tokens != 0) {
      findings.without_effect("cache_tokens", "cache_tokens has no effect with shape = \"linear\"", "remove cache_tokens");
    }
    if (params.shape != PenaltyShape::kSoftOverlong) return;
    if (params.cache_tokens == 0) {
      findings.error("cache_tokens", "shape = \"soft_overlong\" needs cache_tokens", "a fifth of max_tokens is usual");
    } else if (params.cache_tokens > params.max_tokens) {
      findings.error("cache_tokens", "cache_tokens is above max_tokens", "the penalty begins at max_tokens - cache_tokens");
    }
  });
}

void LengthPenalty::process(engine::MicroBatch& batch) {
  auto scores = batch.write({params_.writes, engine::DType::kFloat32, engine::Extent::kSample}).entries<float>();  // [S]
  size_t sample = 0;
  for (const Range actions : batch.actions_by_sample()) {
    scores[sample] = static_cast<float>(score_of(static_cast<int64_t>(actions.size())));
    metrics_.mean(score_metric(params_.writes, "penalised"), scores[sample] < 0);
    ++sample;
  }
  record_scores(metrics_, params_.writes, scores, group_of_samples(batch.layout()));
}

double LengthPenalty::score_of(int64_t length) const {
  const auto most = static_cast<double>(params_.max_tokens), n = static_cast<double>(length);
  if (params_.shape == PenaltyShape::kLinear) return 0 - n / most;
  const auto cache = static_cast<double>(params_.cache_tokens);
  return std::clamp((most - cache - n) / cache, -1.0, 0.0);
}

}  // namespace sluice::nodes
