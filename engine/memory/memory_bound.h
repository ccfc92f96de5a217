#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// Where memory is that no device has.
inline constexpr const char* kHost = "cpu";

// Upper bounds of the bytes that a run of a plan takes. Pure functions of the plan: nodes, columns, models, budget and capacity
// must be filled. They count at worst: every sample as long as it may be, every token in flight an action.

/// All classes but machine_bytes, of a rank, for a budget of `tokens_in_flight`: of what it trains, or samples for others. On the
/// host, or on a device: there is what is of models that are on it; columns and what is to be saved are on the host.
PlanMemory predict_memory(const Plan& plan, int64_t tokens_in_flight, int rank = 0, const std::string& place = kHost);

/// The devices that the models of a rank are on, by name.
std::vector<std::string> devices_of(const Plan& plan, int rank);

/// What a rank that trains has less of the host's memory with [cluster] shard = "parameters"; 0: that is so already, or it is
/// alone.
int64_t sharded_bytes(const Plan& plan, int rank);

/// Of a copy of what all models train: what [checkpoint] copy = "none" does without.
int64_t snapshot_bytes(const Plan& plan);

/// Of these the KV pool of one path's rollout.
int64_t predict_kv_bytes(const Plan& plan, const PlanPath& path, int64_t tokens_in_flight);

/// Where that is: where the model is that the path samples from.
std::string place_of_pool(const Plan& plan, const PlanPath& path);

/// What is chosen by memory leaves a share of it: true if it is needed to 85 % at most, or if nobody knows how much there is.
bool leaves_memory(const PlanMemory& memory);

/// The KV pool of a path's rollout, which samples from that model, for samples that have `tokens` tokens of credit together.
int64_t worst_kv_bytes(const Plan& plan, const PlanPath& path, const ModelFacts& facts, int64_t tokens);

/// Of a token, what a node that writes routes (NodeNeeds::routes_column) writes down; 0: it does not.
int64_t route_bytes_of(const Plan& plan, const NodeNeeds& writer);

/// Columns of a path of which so many tokens are in flight. Those of one micro-batch that can be alive together are the columns
/// none of which has all its readers before the writer of another (engine/plan/antichain.h). A filter's copies of what it keeps
/// count as columns of their own.
int64_t worst_column_bytes(const Plan& plan, const PlanPath& path, int64_t tokens);

/// Columns of one group on its way between ranks.
struct GroupBytes {
  int64_t prompt = 0;  // that its source writes
  int64_t made = 0;    // that the rollout adds, with the place of each action
};
GroupBytes worst_group_bytes(const Plan& plan, const PlanPath& path);

/// Activations, for a budget of `tokens_in_flight`: on each executor the pass that takes most, because its nodes do not work at
/// once. A pass has at most [budget] pass_tokens; of a rollout it is a step.
int64_t worst_activation_bytes(const Plan& plan, int64_t tokens_in_flight, int rank = 0, const std::string& place = kHost);

}  // namespace sluice::engine
