#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/observe/iteration_log.h"
#include "engine/plan/plan.h"

/// Metrics that the engine records itself, beside what nodes declare. Everything that names one of them takes the name from here.
namespace sluice::engine::metrics {

// In the name of the node from which micro-batches come: the rollout, or the source where there is none.
inline constexpr const char* kGroups = "data/groups";
inline constexpr const char* kSamples = "data/samples";
inline constexpr const char* kTokens = "data/tokens";
inline constexpr const char* kActionTokens = "data/action_tokens";       // without a rollout
inline constexpr const char* kSampledTokens = "rollout/sampled_tokens";  // with one, like the next
inline constexpr const char* kKvBytesMax = "memory/kv_bytes_max";
inline constexpr const char* kPolicyVersion =
    "rollout/policy_version";  // of a path that measures: the weights that it sampled from

// What each rank measures of itself, with more names on several ranks: see over_ranks.h. Saving is rank 0's alone.
inline constexpr const char* kIterationSeconds = "time/iteration_seconds";
inline constexpr const char* kRolloutSeconds = "time/rollout_seconds";
inline constexpr const char* kTrainSeconds = "time/train_seconds";
inline constexpr const char* kOverlapSeconds = "time/overlap_seconds";
inline constexpr const char* kTailSeconds = "time/tail_seconds";  // of rollouts: see RolloutTail
inline constexpr const char* kCheckpointSeconds = "time/checkpoint_seconds";
inline constexpr const char* kTokensInFlightMax = "engine/tokens_in_flight_max";
inline constexpr const char* kGroupsForOthers = "engine/groups_made_for_others";  // where ranks share the making
inline constexpr const char* kLostRanks = "engine/lost_ranks";  // at that time, where the run goes on without them
inline constexpr const char* kColumnBytesMax = "memory/column_bytes_max";
inline constexpr const char* kResidentBytes = "memory/resident_bytes";
inline constexpr const char* kTensorBytesMax = "memory/tensor_bytes_max";

// Where ranks train for others that sample, of the version that an iteration samples with (version_arrivals.h). The first two
// each of these measures itself.
inline constexpr const char* kWeightsStallSeconds = "time/weights_stall_seconds";
inline constexpr const char* kWeightsLinkShare = "time/weights_link_share";
inline constexpr const char* kWeightsSeconds = "time/weights_seconds";
inline constexpr const char* kWeightsRate = "time/weights_gigabytes_per_second";
inline constexpr const char* kWeightsSlowestSeconds = "time/weights_slowest_receiver_seconds";
inline constexpr const char* kWeightsBytes = "engine/weights_bytes";
inline constexpr const char* kWeightsSlowest = "engine/weights_slowest_receiver";

std::string busy_seconds_of_executor(const std::string& executor);
std::string busy_seconds_of_node(const std::string& node);

/// Ranks train a model for others that sample from it.
bool sends_weights(const Plan& plan);

/// A number of a filter: `what` is one of those below.
std::string of_filter(const std::string& node, const std::string& what);

// What it let through; the last two where it has dropped groups replaced.
inline constexpr const char* kGroupsKept = "groups_kept";
inline constexpr const char* kGroupsDropped = "groups_dropped";
inline constexpr const char* kGroupsSurplus = "groups_surplus";
inline constexpr const char* kGroupsMissing = "groups_missing";

// Shares of the samples that a node was given, and of their actions, that it took out of what is trained on: weighted means.
// The engine records them of filters; a node that takes out single samples declares them, and records them itself.
inline constexpr const char* kDroppedSamples = "dropped_samples";
inline constexpr const char* kDroppedTokens = "dropped_tokens";

/// Of a path with a rollout and with nodes that have these shares: what part of the sampled tokens they took out, less what part
/// of the samples. 0: what is trained on is as long as what was sampled; above 0: longer samples were taken out. What nodes
/// after each other let through multiplies. Nothing: no node had a sample.
std::string dropped_by_length_name(const Plan& plan, const PlanPath& path);
std::optional<double> dropped_by_length(const Plan& plan, const PlanPath& path, const IterationReport& report);

/// Of the main path: the tokens that are learned from or sampled, with their node's prefix, and their number in a second.
std::string action_tokens(const Plan& plan);
std::string action_tokens_per_second(const Plan& plan);

/// Declares what the engine records in the name of a node. `gives_batches`: micro-batches come from it. `measures`: its path
/// does.
void declare(NodeKind kind, const NodeNeeds& needs, bool gives_batches, bool measures, std::vector<MetricSpec>& metrics);

/// Every metric that a run of the plan can have, families left out, in the order of metrics.jsonl.
std::vector<std::string> all_names(const Plan& plan);

/// Those of one node, with its prefix.
std::vector<std::string> names_of(const PlanNode& node);

/// Whether that metric tells, in its line of metrics.jsonl, of the weights before training: of no checkpoint, and of nothing that
/// the run has made.
bool tells_of_first_weights(const Plan& plan, const std::string& name, int64_t iteration);

/// True where a user's function may make up that name as it runs.
bool is_of_family(const Plan& plan, const std::string& name);

}  // namespace sluice::engine::metrics
