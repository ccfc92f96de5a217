#pragma once

#include <memory>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/models/weights/weight_publisher.h"

namespace sluice::nodes {

/// Publishes the weights that an iteration has trained: what the next one may sample with.
///
///   [nodes.sync]
///   type = "sync_weights"
///   inputs = ["train"]
///   model = "actor"
///
/// Reads and writes no columns. At the end of iteration i the live weights become version i + 1.
struct SyncWeightsParams {
  std::string model;
};

class SyncWeights final : public engine::Node {
 public:
  static void describe(engine::Contract<SyncWeightsParams>& contract);

  SyncWeights(const SyncWeightsParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch&) override {}
  void end_iteration(const engine::Iteration& iteration) override;

 private:
  const std::shared_ptr<WeightPublisher> publisher_;
};

}  // namespace sluice::nodes
