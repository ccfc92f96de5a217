#include "engine/observe/engine_metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "engine/observe/over_ranks.h"

namespace sluice::engine::metrics {
namespace {

// What each rank measures of itself.
std::vector<std::string> measured_names(const Plan& plan) {
  std::vector<std::string> names{kRolloutSeconds,   kTrainSeconds,      kOverlapSeconds, kTailSeconds,
                                 kIterationSeconds, kTokensInFlightMax, kColumnBytesMax};
  if (plan.shares_making()) names.push_back(kGroupsForOthers);
  if (plan.expendable().any()) names.push_back(kLostRanks);
  for (const PlanExecutor& executor : plan.executors) names.push_back(busy_seconds_of_executor(executor.name));
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (!plan.is_inside_rollout(static_cast<int>(i))) names.push_back(busy_seconds_of_node(plan.nodes[i].name));
  }
  names.insert(names.end(), {kResidentBytes, kTensorBytesMax});
  if (sends_weights(plan)) names.insert(names.end(), {kWeightsStallSeconds, kWeightsLinkShare});
  return names;
}

bool records(const PlanNode& node, const std::string& name) {
  return std::ranges::any_of(node.needs.metrics, [&](const MetricSpec& metric) { return metric.name == name; });
}

// As it runs.
bool makes_up(const PlanNode& node, const std::string& name) {
  return std::ranges::any_of(node.needs.metrics, [&](const MetricSpec& metric) {
    return metric.is_family && name.starts_with(prefixed_metric(node.metrics_prefix, metric.name));
  });
}

// Nodes of the path that take samples out of what is trained on.
std::vector<const PlanNode*> dropping_nodes(const Plan& plan, const PlanPath& path) {
  std::vector<const PlanNode*> nodes;
  if (!path.rollout || path.measures()) return nodes;
  for (const PlanNode& node : plan.nodes) {
    if (&plan.paths[static_cast<size_t>(node.path)] == &path && records(node, of_filter(node.name, kDroppedTokens)))
      nodes.push_back(&node);
  }
  return nodes;
}

}  // namespace

std::string busy_seconds_of_executor(const std::string& executor) { return "time/executor/" + executor + "/busy_seconds"; }

std::string busy_seconds_of_node(const std::string& node) { return "time/node/" + node + "/busy_seconds"; }

bool sends_weights(const Plan& plan) {
  const auto is_sent = [](const PlanModel& model) { return model.usage.updated && model.usage.versions.readable > 0; };
  return plan.has_roles() && std::ranges::any_of(plan.models, is_sent);
}

std::string of_filter(const std::string& node, const std::string& what) { return "filter/" + node + "/" + what; }

std::string dropped_by_length_name(const Plan& plan, const PlanPath& path) {
  return prefixed_metric(plan.maker_of(path).metrics_prefix, "rollout/dropped_by_length");
}

std::optional<double> dropped_by_length(const Plan& plan, const PlanPath& path, const IterationReport& report) {
  double kept_samples = 1, kept_tokens = 1;
  bool had_samples = false;
  for (const PlanNode* node : dropping_nodes(plan, path)) {
    const auto share = [&](const char* what) {
      return report.metric(prefixed_metric(node->metrics_prefix, of_filter(node->name, what)));
    };
    const double samples = share(kDroppedSamples), tokens = share(kDroppedTokens);
    if (std::isnan(samples) || std::isnan(tokens)) continue;
    had_samples = true;
    kept_samples *= 1 - samples;
    kept_tokens *= 1 - tokens;
  }
  return had_samples ? std::optional(kept_samples - kept_tokens) : std::nullopt;
}

std::string action_tokens(const Plan& plan) {
  const PlanPath& path = plan.main_path();
  const PlanNode& node = plan.maker_of(path);
  return prefixed_metric(node.metrics_prefix, path.rollout ? kSampledTokens : kActionTokens);
}

std::string action_tokens_per_second(const Plan& plan) {
  return plan.main_path().rollout ? "time/sampled_tokens_per_second" : "time/action_tokens_per_second";
}

void declare(NodeKind kind, const NodeNeeds& needs, bool gives_batches, bool measures, std::vector<MetricSpec>& metrics) {
  const auto add = [&](std::string name, Metric how) { metrics.push_back({.name = std::move(name), .kind = how, .doc = {}}); };
  if (gives_batches) {
    for (const char* name : {kGroups, kSamples, kTokens}) add(name, Metric::kSum);
    add(kind == NodeKind::kRollout ? kSampledTokens : kActionTokens, Metric::kSum);
  }
  if (kind == NodeKind::kRollout) add(kKvBytesMax, Metric::kMaximum);
  if (kind == NodeKind::kRollout && measures) add(kPolicyVersion, Metric::kValue);
  if (!needs.drops_groups) return;
  for (const char* what : {kGroupsKept, kGroupsDropped}) add(of_filter("NODE", what), Metric::kSum);
  for (const char* what : {kDroppedSamples, kDroppedTokens}) add(of_filter("NODE", what), Metric::kMean);
  if (needs.most_draws <= 1) return;
  for (const char* what : {kGroupsSurplus, kGroupsMissing}) add(of_filter("NODE", what), Metric::kSum);
}

std::vector<std::string> names_of(const PlanNode& node) {
  std::vector<std::string> names;
  for (const MetricSpec& metric : node.needs.metrics) {
    if (metric.is_family) continue;
    for (const std::string& name : engine::names_of(metric)) names.push_back(prefixed_metric(node.metrics_prefix, name));
  }
  return names;
}

std::vector<std::string> all_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const PlanNode& node : plan.nodes) std::ranges::copy(names_of(node), std::back_inserter(names));
  for (const PlanPath& path : plan.paths) {
    if (!dropping_nodes(plan, path).empty()) names.push_back(dropped_by_length_name(plan, path));
  }
  names.push_back(action_tokens_per_second(plan));
  for (const std::string& name : measured_names(plan))
    std::ranges::copy(names_over_ranks(name, plan.scheduling_ranks()), std::back_inserter(names));
  if (sends_weights(plan))
    names.insert(names.end(), {kWeightsSeconds, kWeightsRate, kWeightsSlowestSeconds, kWeightsBytes, kWeightsSlowest});
  names.push_back(kCheckpointSeconds);
  return names;
}

bool tells_of_first_weights(const Plan& plan, const std::string& name, int64_t iteration) {
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    const PlanPath& path = plan.paths[static_cast<size_t>(node.path)];
    if (!path.settings.measures_before(iteration)) return false;
    const std::vector<std::string> names = names_of(node);
    return makes_up(node, name) || std::ranges::find(names, name) != names.end();
  });
}

bool is_of_family(const Plan& plan, const std::string& name) {
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) { return makes_up(node, name); });
}

}  // namespace sluice::engine::metrics
