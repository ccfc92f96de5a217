#pragma once

#include "engine/contract.h"
#include "engine/node.h"
#include "nodes/advantages/whitening.h"

namespace sluice::nodes {

/// Generalised advantage estimation over the actions of each sample (Schulman et al. 2016, eq. 16).
///
///   [nodes.advantages]
///   type = "gae"
///   inputs = ["rewards", "values"]
///   discount = 1.0         # gamma
///   lambda = 0.95          # 0: one-step error of the critic, 1: sampled return
///   whiten = "iteration"   # or "none"
///
/// Reads token_rewards[A], values[A]; writes advantages[A], returns[A]  (A: actions of the micro-batch).
/// With whiten = "iteration" the node is a barrier: nothing leaves before the iteration's last micro-batch is in. Only advantages
/// are whitened. A NaN goes to the earlier actions of its sample, and with whitening to all of the iteration.
struct GaeParams {
  double discount = 1.0;
  double lambda = 0.95;
  Whitening whiten = Whitening::kNone;
};

class Gae final : public engine::Node {
 public:
  static void describe(engine::Contract<GaeParams>& contract);

  Gae(const GaeParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), reducer_(*resources.reducer) {}

  void process(engine::MicroBatch& batch) override;
  void process_iteration(std::span<engine::MicroBatch> batches) override;

 private:
  GaeParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Reducer& reducer_;
};

}  // namespace sluice::nodes
