#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/contract/world/pass_group.h"
#include "models/sample/shared_steps.h"
#include "nodes/models/passes/group_exchange.h"
#include "nodes/models/sampling/sampling_command.h"

namespace sluice::nodes {

class SampledWeights;

/// Leads the generations of a model whose steps several ranks make together: each has its part of the weights and of the KV cache
/// (models/layers/column_share.h). What is sampled when, and drawn how, this rank decides; the others get the sequences of each
/// step.
///
/// Ownership: uses what it is given, which outlives it. Threads: any; of several generations one makes a step at a time. Failure:
/// as PassGroup.
class SamplingLead {
 public:
  SamplingLead(engine::PassGroup& group, const SampledWeights& sampled);

  /// For a generation of its own.
  std::shared_ptr<models::SharedSteps> steps();

  /// The others are through. Waits for: them to hear it.
  void dismiss();

 private:
  class Steps;

  void tell(const SamplingCommand& command);
  void tell(const SamplingCommand& command, const std::vector<int64_t>& numbers);

  engine::PassGroup& group_;
  const SampledWeights& sampled_;
  std::mutex mutex_;  // guards what goes to the others
  GroupExchange exchange_;
  int64_t generations_ = 0;
};

}  // namespace sluice::nodes
