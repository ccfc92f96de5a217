#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "engine/contract/node.h"
#include "nodes/forward/forward.h"
#include "nodes/objectives/objective.h"
#include "nodes/train/actor_critic.h"
#include "nodes/train/policy_metrics.h"
#include "nodes/train/ppo_pass.h"

namespace sluice::nodes {

struct TrainPpoParams;

/// Computes the losses of train_ppo and their gradients, pass by pass, with metrics of both. Used by one thread.
class PpoGradients {
 public:
  /// `params` and `models` outlive it.
  PpoGradients(const TrainPpoParams& params, ActorCritic& models, const engine::NodeResources& resources);

  /// Adds the gradients of a pass, and its counts to the totals. Throws UserError where a loss is not finite.
  void accumulate(const PpoPass& pass, const PpoStep& step);

  /// Records what is told of the policy before the first step of an iteration, once totals can be read.
  void record_policy() { policy_metrics_.record_totals(); }

 private:
  void accumulate_both(const PpoPass& pass, const PpoStep& step);  // of one model
  void accumulate_actor(const PpoPass& pass, const PpoStep& step);
  void accumulate_critic(const PpoPass& pass, const PpoStep& step);
  std::vector<double> counted_by_policy(const PpoPass& pass) const;
  bool wants_entropy(const PpoStep& step) const;
  ObjectiveResult policy_loss(const PpoPass& pass, const PolicyOutputs& outputs, const PpoStep& step);
  ObjectiveResult value_loss(const PpoPass& pass, const at::Tensor& values, const PpoStep& step);
  void record_loss(const char* name, const char* count, double loss_sum, const ObjectiveResult& result);
  void add_policy_metrics(const PpoPass& pass, const PolicyOutputs& outputs);

  const TrainPpoParams& params_;
  ActorCritic& models_;
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  PolicyMetrics policy_metrics_;
};

}  // namespace sluice::nodes
