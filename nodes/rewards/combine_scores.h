#pragma once

#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/columns/weighted_scores.h"

namespace sluice::nodes {

/// Adds several scores of a sample into one: sum of weight * score.
///
///   [nodes.score]
///   type = "combine_scores"
///   inputs = ["exact", "format"]
///   scores = ["score_exact", "score_format"]   # the columns that the scorers write (their parameter writes)
///   weights = [1.0, 0.2]                       # one for each; default: all 1
///   writes = "score"
///
/// Reads `scores`[S] each, and mask[A] where a node writes it; writes score[S]  (S: samples, A: actions). Masked samples get
/// their sum and are not recorded. A score that is not finite, or a sum beyond float32, is a UserError that names column, group
/// and sample. To compare each score within its group before they are added: gdpo.
struct CombineScoresParams : WeightedScoresParams {
  std::string writes = "score";
};

class CombineScores final : public engine::Node {
 public:
  static void describe(engine::Contract<CombineScoresParams>& contract);

  CombineScores(const CombineScoresParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  const CombineScoresParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
