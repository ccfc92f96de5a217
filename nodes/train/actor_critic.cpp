#include "nodes/train/actor_critic.h"

#include "nodes/models/model_parts.h"
#include "nodes/train/optimizer_step.h"
#include "nodes/train/train_ppo_totals.h"

namespace sluice::nodes {

ActorCritic::ActorCritic(const std::string& actor, const std::string& critic, engine::NodeResources& resources)
    : actor_(trained_model(resources, actor)),
      critic_(critic.empty() ? nullptr : trained_model(resources, critic)),
      metrics_(*resources.metrics),
      totals_(*resources.totals),
      actor_routers_(*actor_, RouterMetrics::kGroup, resources) {
  if (are_two()) critic_routers_.emplace(*critic_, train_ppo::kCriticRouter, resources);
}

void ActorCritic::begin(const engine::Iteration& iteration) {
  begin_training(*actor_, iteration, metrics_, "policy");
  if (are_two()) begin_training(*critic_, iteration, metrics_, "value");
}

void ActorCritic::enter(const engine::MicroBatch& batch) {
  actor_->enter_slot(batch.slot());
  if (are_two()) critic_->enter_slot(batch.slot());
}

void ActorCritic::expect_last_backward() {
  actor_->expect_last_backward();
  if (are_two()) critic_->expect_last_backward();
}

bool ActorCritic::step() {
  actor_routers_.record_step();
  if (critic_routers_) critic_routers_->record_step();
  const double actor_count = totals_.sum_of_all(train_ppo::kActorCount);
  if (actor_count == 0) return false;
  if (are_two()) {
    require_finite_gradients(*actor_);
    require_finite_gradients(*critic_);
  }
  metrics_.mean("policy/grad_norm", step_optimizer(*actor_, actor_count));
  if (are_two()) metrics_.mean("value/grad_norm", step_optimizer(*critic_, totals_.sum_of_all(train_ppo::kCriticCount)));
  return true;
}

void ActorCritic::warn_of_no_step(const engine::Iteration& iteration) const {
  nodes::warn_of_no_step(*actor_, iteration);
  if (are_two()) nodes::warn_of_no_step(*critic_, iteration);
}

}  // namespace sluice::nodes
