#pragma once

#include <optional>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// A reward for being right that depends on the length: the cosine reward (Yeo et al. 2025, "Demystifying Long Chain-of-Thought
/// Reasoning in LLMs", arXiv 2502.03373, section 4). Of a sample with n actions and a score that says whether it is right:
///
///   exceeded                                               n >= max_tokens, if it is set
///   long + (short - long) (1 + cos(pi n / max_tokens)) / 2    with correct_short, correct_long, or with wrong_short, wrong_long
///
/// So it goes from `short` at no tokens to `long` at max_tokens and beyond, slowly at both ends.
///
///   [nodes.score]
///   type = "cosine_reward"
///   inputs = ["correct"]
///   reads = "correct"          # a score that tells right from wrong
///   writes = "score"
///   max_tokens = 512           # as max_new_tokens of generate
///   correct_short = 1.0        # the paper's r_0^c: right, with no tokens
///   correct_long = 0.5         # r_L^c
///   wrong_short = -1.0         # r_0^w: wrong, with no tokens: it pays to go on thinking
///   wrong_long = -0.5          # r_L^w
///   exceeded = -1.0            # r_e, right or wrong: cut off; unset: nothing special
///   least_score = 1.0          # a sample with at least this score is right
///
/// Reads `reads`[S], and mask[A] where a node writes it; writes `writes`[S]  (S: samples, A: actions); tokens count as in
/// length_penalty. Masked samples get their reward and are not recorded. A score that is not finite is a UserError that names
/// column, group and sample.
struct CosineRewardParams {
  std::string reads = "raw_score";
  std::string writes = "score";
  int64_t max_tokens = 0;
  double correct_short = 1;
  double correct_long = 0.5;
  double wrong_short = -1;
  double wrong_long = -0.5;
  std::optional<double> exceeded;
  double least_score = 1;
};

class CosineReward final : public engine::Node {
 public:
  static void describe(engine::Contract<CosineRewardParams>& contract);

  CosineReward(const CosineRewardParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  double reward_of(bool right, int64_t length) const;

  const CosineRewardParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
