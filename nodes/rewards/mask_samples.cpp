#include "nodes/rewards/mask_samples.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "nodes/columns/columns.h"
#include "nodes/columns/dropped_samples.h"
#include "nodes/columns/finish.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

namespace {

bool reads_score(const MaskSamplesParams& params) { return params.best_of || params.least_score; }

// Why a sample goes, one reason after the other.
class SampleMask {
 public:
  SampleMask(size_t samples, engine::MetricsRecorder& metrics) : keep_(samples, true), metrics_(metrics) {}

  /// `goes(s)` tells whether sample s has to go for this reason.
  template <class Goes>
  void drop(const std::string& reason, Goes goes) {
    for (size_t s = 0; s < keep_.size(); ++s) {
      const bool dropped = goes(s);
      metrics_.mean("filter/masked_" + reason, dropped);
      if (dropped) keep_[s] = false;
    }
  }

  const std::vector<bool>& keep() const { return keep_; }

 private:
  std::vector<bool> keep_;  // [S]
  engine::MetricsRecorder& metrics_;
};

// For each sample whether it is one of the `count` best of its group.
std::vector<bool> best_samples(std::span<const float> scores, const std::vector<Range>& samples_by_group, size_t count) {
  std::vector<bool> best(scores.size(), false);
  for (const Range samples : samples_by_group) {
    std::vector<size_t> order(samples.size());
    std::iota(order.begin(), order.end(), samples.begin);
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return scores[a] > scores[b]; });
    for (size_t i = 0; i < std::min(count, order.size()); ++i) best[order[i]] = true;
  }
  return best;
}

}  // namespace

void MaskSamples::describe(engine::Contract<MaskSamplesParams>& c) {
  using P = MaskSamplesParams;
  c.type("mask_samples", "takes samples out of losses and statistics: the truncated, the worse, the long");
  c.param("truncated", &P::truncated).doc("masks samples that were cut off at max_new_tokens");
  c.param("best_of", &P::best_of).at_least(1).unit("samples").doc("masks all but so many best-scored samples of each group");
  c.param("least_score", &P::least_score).between(-kLargestScore, kLargestScore).doc("masks samples with a lower score");
  c.param("most_tokens", &P::most_tokens).at_least(0).unit("tokens").doc("masks samples of more actions");
  c.reads_if([](const P& params) { return params.truncated; }, columns::kFinish);
  c.reads_if(reads_score, columns::kScore);
  c.writes(columns::kMask);
  describe_dropped_samples(c, "share of the samples that are masked, for whatever reason");
  c.metric("filter/masked_truncated", engine::Metric::kMean, "share of the samples that were cut off");
  c.metric("filter/masked_best_of", engine::Metric::kMean, "share of the samples that are not among the best of their group");
  c.metric("filter/masked_least_score", engine::Metric::kMean, "share of the samples with a score below least_score");
  c.metric("filter/masked_most_tokens", engine::Metric::kMean, "share of the samples of more than most_tokens actions");
  c.check([](const P& params, engine::Findings& findings) {
    if (params.truncated || reads_score(params) || params.most_tokens) return;
    findings.without_effect("truncated", "no sample is ever masked",
                            "set truncated, best_of, least_score or most_tokens, or remove the node");
  });
}

void MaskSamples::process(MicroBatch& batch) {
  SampleMask samples(batch.samples(), metrics_);
  const std::vector<Range> actions = batch.actions_by_sample();

  if (params_.truncated) {
    const auto finish = batch.read(columns::kFinish);  // [S]
    samples.drop("truncated", [&](size_t s) { return finish[s] == static_cast<uint8_t>(Finish::kLength); });
  }
  const auto scores = reads_score(params_) ? finite_scores(batch, columns::kScore.name) : std::span<const float>();  // [S]
  if (params_.best_of) {
    const auto best = best_samples(scores, batch.layout().samples_by_group(), static_cast<size_t>(*params_.best_of));
    samples.drop("best_of", [&](size_t s) { return !best[s]; });
  }
  if (params_.least_score) samples.drop("least_score", [&](size_t s) { return !is_at_least(scores[s], *params_.least_score); });
  if (params_.most_tokens) {
    const auto most = static_cast<size_t>(*params_.most_tokens);
    samples.drop("most_tokens", [&](size_t s) { return actions[s].size() > most; });
  }

  auto mask = batch.write(columns::kMask);  // [A], zero
  for (size_t s = 0; s < actions.size(); ++s) {
    record_sample(node_, !samples.keep()[s], actions[s].size(), metrics_);
    if (samples.keep()[s]) std::ranges::fill(mask.subspan(actions[s].begin, actions[s].size()), 1.0f);
  }
}

}  // namespace sluice::nodes
