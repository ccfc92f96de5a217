#pragma once

#include <memory>
#include <optional>
#include <string>

#include "engine/contract/node.h"
#include "nodes/models/trained_model.h"
#include "nodes/train/router_metrics.h"

namespace sluice::nodes {

/// The models that train_ppo trains: an actor, and a critic if there is one, which may be the actor itself. What is done to both
/// is done once to a model that is both. Metrics are policy/... and value/... . Used by one thread.
class ActorCritic {
 public:
  /// The names of the models; an empty `critic`: there is none.
  ActorCritic(const std::string& actor, const std::string& critic, engine::NodeResources& resources);

  bool has_critic() const { return critic_ != nullptr; }
  const ForwardModel& actor() const { return actor_->forward(); }
  const ForwardModel& critic() const { return critic_->forward(); }

  RouterMetrics& routers_of_actor() { return actor_routers_; }
  RouterMetrics& routers_of_critic() { return *critic_routers_; }  // of one that is another model

  /// Sets the learning rates of an iteration, and records them.
  void begin(const engine::Iteration& iteration);

  /// Gradients are of this micro-batch from now on.
  void enter(const engine::MicroBatch& batch);

  /// The next backward of each is the last that adds to the step on this rank.
  void expect_last_backward();

  /// One step of each, with the gradients divided by the totals kActorCount and kCriticCount: both make it or none does. False:
  /// nothing is there to learn from. Throws as step_optimizer() does.
  bool step();

  void warn_of_no_step(const engine::Iteration& iteration) const;

 private:
  bool are_two() const { return critic_ != nullptr && critic_ != actor_; }

  const std::shared_ptr<TrainedModel> actor_;
  const std::shared_ptr<TrainedModel> critic_;  // null: none; may be the actor
  engine::MetricsRecorder& metrics_;
  engine::Totals& totals_;
  RouterMetrics actor_routers_;
  std::optional<RouterMetrics> critic_routers_;  // of a critic that is another model
};

}  // namespace sluice::nodes
