#include "nodes/advantages/gdpo.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>

#include "nodes/advantages/rewards.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::Range;

namespace {

constexpr const char* kSumTotal = "sums";  // of the samples that count

std::string share_metric(const std::string& score) { return "advantage/" + score + "_abs_mean"; }

double sum_of(const std::vector<double>& terms) { return std::accumulate(terms.begin(), terms.end(), 0.0); }

}  // namespace

void Gdpo::describe(engine::Contract<GdpoParams>& c) {
  using P = GdpoParams;
  c.type("gdpo", "several scores, each relative to the other samples of the group in standard deviations, added up");
  describe_weighted_scores(c);
  c.param("over_iteration", &P::over_iteration).doc("divides the sum by its std over the samples of the iteration");
  c.param("epsilon", &P::epsilon).at_least(0).doc("added to each std");
  c.param("std", &P::std).doc("squares over n - 1 (bessel) or over n (biased)");
  c.needs([](const P&, engine::NodeNeeds& needs) { needs.least_samples = 2; });
  c.reads_if_written(columns::kMask);
  c.writes(columns::kAdvantages);
  c.iteration_scope_if([](const P& params) { return params.over_iteration; }, "over_iteration = true");
  c.total_if([](const P& params) { return params.over_iteration; }, kSumTotal);
  c.metrics("advantage/SCORE_abs_mean", engine::Metric::kMean,
            "for each of scores: mean over the samples of what it adds to their sum, without the sign", [](const P& params) {
              std::vector<std::string> names;
              for (const std::string& score : params.scores) names.push_back(share_metric(score));
              return names;
            });
  c.metric("advantage/iteration_std", engine::Metric::kValue, "what the sums are divided by, with over_iteration = true");
  c.metric("advantage/zero_advantages", engine::Metric::kMean,
           "share of the groups all of whose advantages are 0: they teach nothing");
}

std::vector<std::vector<double>> Gdpo::terms_of(const MicroBatch& batch) const {
  const ActionMask mask(batch);
  const std::vector<Range> actions = batch.actions_by_sample();
  std::vector<std::vector<double>> terms(batch.samples());
  for (size_t k = 0; k < params_.scores.size(); ++k) {
    const auto scores = scores_that_count(batch, params_.scores[k]);  // [S]
    for (const Range samples : batch.layout().samples_by_group()) {
      std::vector<double> of_group;
      for (size_t s = samples.begin; s < samples.end; ++s)
        if (mask.counts(actions[s])) of_group.push_back(scores[s]);
      const Moments moments = moments_of(of_group, params_.std);
      for (size_t s = samples.begin; s < samples.end; ++s) {
        if (!mask.counts(actions[s])) continue;
        const double centred = scores[s] - moments.mean;  // 0 in a group of equal scores, whatever divides it
        terms[s].push_back(centred == 0 ? 0 : params_.weight_of(k) * centred / (std::sqrt(moments.variance) + params_.epsilon));
      }
    }
  }
  return terms;
}

void Gdpo::process(MicroBatch& batch) { write(batch, 1); }

void Gdpo::gather(int64_t, std::span<MicroBatch> batches) {
  ExactMoments& sums = totals_.mine(kSumTotal);
  for (const MicroBatch& batch : batches)
    for (const std::vector<double>& terms : terms_of(batch))
      if (!terms.empty()) sums.add(sum_of(terms));
}

void Gdpo::process_iteration(int64_t, std::span<MicroBatch> batches) {
  const ExactMoments& sums = totals_.of_all(kSumTotal);
  const double divisor = std::sqrt(moments_of(sums, params_.std).variance) + params_.epsilon;
  if (sums.count() > 0) metrics_.value("advantage/iteration_std", divisor);
  for (MicroBatch& batch : batches) write(batch, divisor);
}

void Gdpo::write(MicroBatch& batch, double divisor) {
  const std::vector<std::vector<double>> terms = terms_of(batch);
  const std::vector<Range> actions = batch.actions_by_sample();
  auto advantages = batch.write(columns::kAdvantages);  // [A], zero
  for (const Range samples : batch.layout().samples_by_group()) {
    bool counts = false, all_zero = true;
    for (size_t s = samples.begin; s < samples.end; ++s) {
      if (terms[s].empty()) continue;
      const double sum = sum_of(terms[s]);
      counts = true;
      all_zero = all_zero && sum == 0;
      if (sum != 0) std::ranges::fill(advantages.subspan(actions[s].begin, actions[s].size()), static_cast<float>(sum / divisor));
      for (size_t k = 0; k < terms[s].size(); ++k) metrics_.mean(share_metric(params_.scores[k]), std::abs(terms[s][k]));
    }
    if (counts) metrics_.mean("advantage/zero_advantages", all_zero);
  }
  zero_masked(advantages, ActionMask(batch));
}

}  // namespace sluice::nodes
