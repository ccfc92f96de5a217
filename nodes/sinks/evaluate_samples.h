#pragma once

#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/answer_text.h"

namespace sluice::nodes {

/// How often a group of samples holds a right one, and how often its majority is right.
///
///   [nodes.evaluate]
///   type = "evaluate_samples"
///   inputs = ["score"]
///   k = [1, 4]               # sizes to record metrics for; each at most the samples of a group
///   least_score = 1.0        # a sample with at least this score is right
///   extract = '####\s*(.+)'  # as in exact_match: what of the response is the answer that votes
///   normalize = "none"       # as in exact_match: which answers are the same
///
/// Reads score[S], response[S]. Records, as means over the groups, for each k:
///   pass_at_K  the chance that one of k of the group's n samples is right, 1 - C(n - c, k) / C(n, k) with c right ones: unbiased
///              (Chen et al. 2021, eq. 1); pass_at_1 is the accuracy
///   maj_at_K   how right the commonest answer among k samples is (Wang et al. 2023, "self-consistency"), mean over the floor(n /
///   k)
///              runs of k samples; of equally common answers the mean; an answer is as right as the mean of its samples. A
///              response without an answer does not vote, and where nobody votes the majority is wrong
/// A group with fewer than k samples is a UserError.
struct EvaluateSamplesParams {
  std::vector<double> k{1};
  double least_score = 1.0;
  std::string extract;
  AnswerForm normalize = AnswerForm::kNone;
};

class EvaluateSamples final : public engine::Node {
 public:
  static void describe(engine::Contract<EvaluateSamplesParams>& contract);

  EvaluateSamples(const EvaluateSamplesParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  // One sample: what it votes for, and whether it is right.
  struct Vote {
    std::optional<std::string> answer;
    bool right = false;
  };

  std::optional<std::string> answer_in(const std::string& response);
  static double majority(std::span<const Vote> votes);

  EvaluateSamplesParams params_;
  AnswerFinder finder_;
  engine::MetricsRecorder& metrics_;
};

/// The chance that of `drawn` of `samples` samples, `right` of which are right, at least one is: 1 - C(n - c, k) / C(n, k).
double pass_at(int64_t samples, int64_t right, int64_t drawn);

}  // namespace sluice::nodes
