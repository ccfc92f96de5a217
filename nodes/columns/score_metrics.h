#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/layout.h"
#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// A metric of the scores in a column: "reward/score_answered", or with no `what` "reward/score".
std::string score_metric(const std::string& column, const std::string& what = {});

/// Records mean and std of `scores`[S] of a column and, of groups of several samples, zero_variance: the share of the groups
/// all of whose scores are equal. `groups`[S]: the group of each, ascending.
void record_scores(engine::MetricsRecorder& metrics, const std::string& column, std::span<const float> scores,
                   std::span<const size_t> groups);

/// The group of each sample.
std::vector<size_t> group_of_samples(const engine::Layout& layout);

/// The column of the scores that a node writes: that of its score_column(), or else of its parameter `writes`.
template <class P>
std::string written_scores(const P& params) {
  if constexpr (requires { params.score_column(); })
    return params.score_column().name;
  else
    return params.writes;
}

/// Declares score_metric(column, what) of that column.
template <class P>
void describe_score_metric(engine::Contract<P>& c, const std::string& what, engine::Metric kind, const std::string& doc) {
  c.metrics(score_metric("COLUMN", what), kind, doc,
            [what](const P& params) { return std::vector{score_metric(written_scores(params), what)}; });
}

/// Declares the metrics of record_scores().
template <class P>
void describe_scores(engine::Contract<P>& c) {
  describe_score_metric(c, "", engine::Metric::kMoments,
                        "mean and standard deviation of the scores, of COLUMN \"score\" by default");
  describe_score_metric(c, "zero_variance", engine::Metric::kMean,
                        "share of the groups all of whose samples have the same score");
}

}  // namespace sluice::nodes
