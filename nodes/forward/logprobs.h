#pragma once

#include <memory>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/passes/forward_model.h"

namespace sluice::nodes {

/// Log-probability of each action under a model.
///
///   [nodes.reference]
///   type = "logprobs"
///   inputs = ["generate"]
///   model = "reference"
///   writes = "reference_logprobs"    # the column's name
///   temperature = 1.0                # as in generate
///   replay_routes = false            # of a mixture of experts: tokens go through the experts that sampled them
///
/// Reads tokens[T], and routes[S] if they are replayed; writes `writes`[A], natural logs, under the model's live weights. No
/// gradient. Computed in passes of [budget] pass_tokens, which change no bit of it on the CPU.
struct LogprobsParams {
  std::string model;
  std::string writes = "reference_logprobs";
  engine::ScheduledNumber temperature = 1.0;
  bool replay_routes = false;
};

class Logprobs final : public engine::Node {
 public:
  static void describe(engine::Contract<LogprobsParams>& contract);

  Logprobs(const LogprobsParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  const LogprobsParams params_;
  const std::shared_ptr<const ForwardModel> model_;
  const int64_t pass_tokens_;
};

}  // namespace sluice::nodes
