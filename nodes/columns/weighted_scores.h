#pragma once

#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/columns/score_columns.h"

namespace sluice::nodes {

/// What nodes have that read several scores of a sample; their parameters derive from it:
///
///   scores = ["correct", "format"]   # the columns that the scorers write (their parameter writes)
///   weights = [1.0, 0.2]             # one for each; default: all 1
struct WeightedScoresParams {
  std::vector<std::string> scores;
  std::vector<double> weights;

  double weight_of(size_t score) const { return weights.empty() ? 1 : weights[score]; }
};

/// Reports what is wrong with them.
void check_weighted_scores(const WeightedScoresParams& params, engine::Findings& findings);

/// Declares the parameters, and that their columns are read.
template <class P>
void describe_weighted_scores(engine::Contract<P>& c) {
  c.param("scores", &P::scores).required().doc("the columns that are added");
  c.param("weights", &P::weights).doc("of each of them; empty: all 1");
  c.needs([](const P& params, engine::NodeNeeds& needs) {
    for (const std::string& name : params.scores) needs.reads.push_back(score_column(name));
  });
  c.check([](const P& params, engine::Findings& findings) { check_weighted_scores(params, findings); });
}

}  // namespace sluice::nodes
