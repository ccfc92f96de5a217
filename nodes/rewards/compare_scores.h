#pragma once

#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// How well one score of samples orders them as another does: a reward model beside the labels of held-out pairs, or beside a
/// verifiable score.
///
///   [nodes.agreement]
///   type = "compare_scores"
///   inputs = ["reward"]
///   column = "reward"        # the scores to judge
///   against = "score"        # those that are taken to be right
///
/// Reads `column`[S], `against`[S], and mask[A] where a node writes it. Over all pairs of samples of one group, none of them
/// masked, that `against` tells apart: COLUMN_accuracy, the share that `column` orders alike (an equal pair counts half), and
/// COLUMN_margin, the mean of `column` of the better sample minus that of the worse. Records nothing where no pair is told apart.
struct CompareScoresParams {
  std::string column;
  std::string against = "score";
};

class CompareScores final : public engine::Node {
 public:
  static void describe(engine::Contract<CompareScoresParams>& contract);

  CompareScores(const CompareScoresParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  const CompareScoresParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
