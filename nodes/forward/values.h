#pragma once

#include <memory>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/passes/forward_model.h"

namespace sluice::nodes {

/// What a critic expects each sample to return from each action on.
///
///   [nodes.values]
///   type = "values"
///   inputs = ["generate"]
///   model = "critic"       # head = "value"
///
/// Reads tokens[T]; writes values[A]: of the state before the action, which the critic sees at the token before it. No gradient.
/// Computed in passes of [budget] pass_tokens, which change no bit of it on the CPU.
struct ValuesParams {
  std::string model;
};

class Values final : public engine::Node {
 public:
  static void describe(engine::Contract<ValuesParams>& contract);

  Values(const ValuesParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  const std::shared_ptr<const ForwardModel> model_;
  const int64_t pass_tokens_;
};

}  // namespace sluice::nodes
