#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// Takes samples out of the losses and statistics of what trains after it: their actions get the mask 0, all others 1.
///
///   [nodes.mask]
///   type = "mask_samples"
///   inputs = ["score"]
///   truncated = true        # samples that ran into max_new_tokens: overlong filtering (Yu et al. 2025, "DAPO", section 3.4)
///   best_of = 4             # all but the 4 best-scored samples of each group; of equal scores the earlier sample is better
///   least_score = 0.5       # samples with a lower score: rejection sampling
///   most_tokens = 4096      # samples of more actions
///
/// Any of them may be left out. Each looks at all samples, whatever the others say; a sample stays if all let it. A group of
/// which no sample stays is fine.
///
/// Reads finish[S] with truncated, score[S] with best_of or least_score; writes mask[A]  (S: samples, A: actions). A score that
/// is not finite is a UserError that names group and sample.
struct MaskSamplesParams {
  bool truncated = false;
  std::optional<int64_t> best_of;
  std::optional<double> least_score;
  std::optional<int64_t> most_tokens;
};

class MaskSamples final : public engine::Node {
 public:
  static void describe(engine::Contract<MaskSamplesParams>& contract);

  MaskSamples(const MaskSamplesParams& params, engine::NodeResources& resources)
      : params_(params), node_(resources.node), metrics_(*resources.metrics) {}

  void process(engine::MicroBatch& batch) override;

 private:
  const MaskSamplesParams params_;
  const std::string node_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
