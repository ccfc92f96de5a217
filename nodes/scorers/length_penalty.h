#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// How the penalty grows with the length.
enum class PenaltyShape { kSoftOverlong, kLinear };

constexpr auto enum_names(PenaltyShape) {
  return std::array{std::pair{PenaltyShape::kSoftOverlong, "soft_overlong"}, std::pair{PenaltyShape::kLinear, "linear"}};
}

/// Scores samples by their number of actions n: the tokens that the policy sampled, its end of sequence included. The prompt and
/// text that others wrote do not count.
///
///   [nodes.length]
///   type = "length_penalty"
///   inputs = ["generate"]
///   shape = "soft_overlong"
///   max_tokens = 20480
///   cache_tokens = 4096        # soft_overlong
///   writes = "length_score"    # combine_scores adds it to another score, with a weight
///
/// soft_overlong (Yu et al. 2025, "DAPO", eq. 13):   0                                                  n <= max_tokens -
/// cache_tokens
///                                                   (max_tokens - cache_tokens - n) / cache_tokens     n <= max_tokens
///                                                   -1                                                 beyond
/// linear:                                           -n / max_tokens
///
/// Writes length_score[S]  (S: samples).
struct LengthPenaltyParams {
  PenaltyShape shape = PenaltyShape::kSoftOverlong;
  int64_t max_tokens = 0;
  int64_t cache_tokens = 0;
  std::string writes = "length_score";
};

class LengthPenalty final : public engine::Node {
 public:
  static void describe(engine::Contract<LengthPenaltyParams>& contract);

  LengthPenalty(const LengthPenaltyParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  double score_of(int64_t length) const;

  const LengthPenaltyParams params_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
