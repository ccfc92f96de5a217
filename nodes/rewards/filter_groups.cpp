#include "nodes/rewards/filter_groups.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/columns/score_columns.h"
#include "nodes/rewards/made_scores.h"

namespace sluice::nodes {

using engine::MicroBatch;
using engine::NodeNeeds;
using engine::Range;

namespace {

bool all_equal(std::span<const float> scores) {
  return std::ranges::all_of(scores, [&](float score) { return score == scores.front(); });
}

}  // namespace

void FilterGroups::describe(engine::Contract<FilterGroupsParams>& c) {
  using P = FilterGroupsParams;
  c.type("filter_groups", "keeps the groups that teach something; can have the others replaced");
  c.param("drop_equal_scores", &P::drop_equal_scores).doc("drops groups all of whose samples have the same score");
  c.param("least_mean_score", &P::least_mean_score)
      .between(-kLargestScore, kLargestScore)
      .doc("drops groups with a lower mean score: too hard");
  c.param("most_mean_score", &P::most_mean_score)
      .between(-kLargestScore, kLargestScore)
      .doc("drops groups with a higher mean score: too easy");
  c.param("most_draws", &P::most_draws)
      .between(1, 1024)
      .doc("draws at most so many times groups_per_iteration groups until enough were kept; 1: what is dropped is not replaced");
  c.param("oversample", &P::oversample).between(1, 64).doc("draws so many times the groups that are missing, in each round");
  c.reads(columns::kScore);
  describe_counted_samples(c);
  c.drops_groups();
  c.needs([](const P& params, NodeNeeds& needs) {
    needs.most_draws = params.most_draws;
    needs.oversample = params.oversample;
    needs.least_samples = params.drop_equal_scores ? 2 : 1;
  });
  c.metric("filter/NODE/zero_variance", engine::Metric::kMean, "share of the groups all of whose samples have the same score");
  c.check([](const P& params, engine::Findings& findings) {
    if (!params.drop_equal_scores && !params.least_mean_score && !params.most_mean_score) {
      findings.without_effect("drop_equal_scores", "the filter keeps every group",
                              "set least_mean_score or most_mean_score, or remove the node");
    }
    if (params.least_mean_score && params.most_mean_score && *params.least_mean_score > *params.most_mean_score) {
      findings.error("least_mean_score", "least_mean_score is above most_mean_score: no group can pass", "swap the two");
    }
    if (params.most_draws == 1 && params.oversample != 1) {
      findings.without_effect("oversample", "oversample has no effect while most_draws is 1",
                              "set most_draws, or remove oversample");
    }
  });
}

void FilterGroups::process(MicroBatch& batch) {
  const auto scores = scores_that_count(batch);              // [S]
  const std::vector<bool> counted = counted_samples(batch);  // [S]
  const std::vector<Range> samples = batch.layout().samples_by_group();
  for (size_t g = 0; g < samples.size(); ++g) {
    if (params_.drop_equal_scores && samples[g].size() < 2) {
      throw UserError("group " + std::to_string(batch.group_index(g)) + " has one sample, so all its scores are equal",
                      "samples_per_prompt >= 2, or drop_equal_scores = false");
    }
    const std::vector<float> of_group = counted_scores(scores, counted, samples[g]);
    metrics_.mean("filter/" + node_ + "/zero_variance", all_equal(of_group));
    if (!passes(of_group)) batch.drop_group(g);
  }
}

bool FilterGroups::passes(std::span<const float> scores) const {
  if (scores.empty()) return false;  // all of its samples are masked
  if (params_.drop_equal_scores && all_equal(scores)) return false;
  const double mean = std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(scores.size());
  return (!params_.least_mean_score || is_at_least(mean, *params_.least_mean_score)) &&
         (!params_.most_mean_score || is_at_most(mean, *params_.most_mean_score));
}

}  // namespace sluice::nodes
