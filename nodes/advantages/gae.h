#pragma once

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/columns/action_mask.h"
#include "nodes/statistics/whitening.h"

namespace sluice::nodes {

/// What the recursion does at an action whose mask is 0.
enum class MaskedActions {
  kIncluded,  // runs through it as through any other: only the whitening leaves it out (TRL, SkyRL, OpenRLHF)
  kSkipped,   // passes over it, as if it were not there; its advantage and return are 0 (NeMo-RL, verl)
};

constexpr auto enum_names(MaskedActions) {
  return std::array{std::pair{MaskedActions::kIncluded, "included"}, std::pair{MaskedActions::kSkipped, "skipped"}};
}

/// Generalised advantage estimation over the actions of each sample (Schulman et al. 2016, eq. 16).
///
///   [nodes.advantages]
///   type = "gae"
///   inputs = ["rewards", "values"]
///   discount = 1.0                # gamma
///   lambda = 0.95                 # 0: one-step error of the critic, 1: sampled return
///   masked_actions = "included"   # "skipped": the recursion passes over actions whose mask is 0
///   whiten = "iteration"          # or "none"; whiten_variance, whiten_epsilon, whiten_mean: see whitening.h
///
/// Reads token_rewards[A], values[A], and mask[A] if there is one; writes advantages[A], returns[A]  (A: actions of the
/// micro-batch). With whiten = "iteration" the node is a barrier: nothing leaves before the iteration's last micro-batch is in.
/// Only advantages are whitened. A reward or value that is not finite is a UserError that names column, group, sample and action;
/// but an action whose mask is 0 is always skipped then.
struct GaeParams : WhiteningParams {
  double discount = 1.0;
  double lambda = 0.95;
  MaskedActions masked_actions = MaskedActions::kIncluded;
};

class Gae final : public engine::Node {
 public:
  static void describe(engine::Contract<GaeParams>& contract);

  Gae(const GaeParams& params, engine::NodeResources& resources)
      : params_(params), metrics_(*resources.metrics), totals_(*resources.totals) {}

  void process(engine::MicroBatch& batch) override;
  void gather(int64_t step, std::span<engine::MicroBatch> batches) override;
  void process_iteration(int64_t step, std::span<engine::MicroBatch> batches) override;

 private:
  GaeParams params_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
};

}  // namespace sluice::nodes
