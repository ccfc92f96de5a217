#include <algorithm>
#include <array>
#include <map>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/observe/engine_metrics.h"

// A line of metrics.jsonl has each key once: what nodes declare must leave the run its own, and be of names that can stand there.
namespace sluice::engine::checking {
namespace {

constexpr const char* kKind = "metric-unusable";
constexpr std::array kFirstKeys{"iteration", "policy_version",
                                "policy_lag"};  // of each line; see Driver::Impl::close_iteration()

std::string declares(const DraftNode& node, const std::string& name) {
  return "type " + sluice::quoted(node.type->info.type) + " of '" + node.name() + "' declares a metric " + sluice::quoted(name);
}

// The beginning of a family ends with the slash in front of what is made up.
std::string fault_of_declared(const MetricSpec& metric) {
  const bool is_group = metric.is_family && metric.name.ends_with('/');
  return fault_of_metric_name(is_group ? metric.name.substr(0, metric.name.size() - 1) : metric.name);
}

bool is_fit(Draft& draft, const DraftNode& node, const MetricSpec& metric) {
  const std::string fault = fault_of_declared(metric);
  if (!fault.empty()) draft.error(kKind, place_of(node), declares(node, metric.name) + ", which cannot be one: " + fault);
  return fault.empty();
}

// What the engine records, by the name that it has in a line.
std::vector<std::string> names_of_run(const Plan& plan) {
  std::vector<std::string> names = metrics::all_names(plan);
  size_t of_nodes = 0;  // which stand in front
  for (const PlanNode& node : plan.nodes) of_nodes += metrics::names_of(node).size();
  names.erase(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(of_nodes));
  names.insert(names.end(), kFirstKeys.begin(), kFirstKeys.end());
  return names;
}

// The first of the run's names that the metric may have; empty: none.
std::string taken_by(const MetricSpec& metric, const std::string& prefix, const std::vector<std::string>& of_run) {
  const auto is_metrics = [&](const std::string& name) {
    if (metric.is_family) return name.starts_with(prefixed_metric(prefix, metric.name));
    const std::vector<std::string> own = engine::names_of(metric);
    return std::ranges::any_of(own, [&](const std::string& one) { return prefixed_metric(prefix, one) == name; });
  };
  const auto found = std::ranges::find_if(of_run, is_metrics);
  return found == of_run.end() ? std::string() : *found;
}

}  // namespace

// A metric that a component declares as its node does is one.
void check_metric_names(Draft& draft, DraftNode& node) {
  std::map<std::string, std::pair<std::string, Metric>> declared;  // by the name in a line: what declares it
  std::vector<MetricSpec> kept;
  for (MetricSpec& metric : node.needs->metrics) {
    if (!is_fit(draft, node, metric)) continue;
    bool is_new = true;
    const std::pair as{metric.name, metric.kind};
    for (const std::string& name : metric.is_family ? std::vector<std::string>() : engine::names_of(metric)) {
      const auto [first, is_first] = declared.emplace(name, as);
      if (!is_first && first->second != as)
        draft.error(kKind, place_of(node), declares(node, name) + " in two ways", {}, "give one of the two another name");
      is_new = is_new && is_first;
    }
    if (is_new) kept.push_back(std::move(metric));
  }
  node.needs->metrics = std::move(kept);
}

void check_reserved_metrics(Draft& draft) {
  const std::vector<std::string> of_run = names_of_run(draft.plan);
  for (const PlanNode& planned : draft.plan.nodes) {
    const DraftNode& node = draft.node(draft.find_node(planned.name));
    for (const MetricSpec& metric : planned.needs.metrics) {
      const std::string name = taken_by(metric, planned.metrics_prefix, of_run);
      if (name.empty()) continue;
      draft.error(kKind, place_of(node),
                  declares(node, metric.name) + ": " + sluice::quoted(name) + " is what the run records itself", {},
                  "give it another name");
    }
  }
}

}  // namespace sluice::engine::checking
