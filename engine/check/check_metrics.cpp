#include <algorithm>
#include <map>
#include <set>

#include "base/text/strings.h"
#include "engine/check/check_draft.h"
#include "engine/observe/engine_metrics.h"

// What each node will record is known before the run: a name belongs to one node, and [checkpoint] keep_best is one of them.
namespace sluice::engine::checking {
namespace {

constexpr const char* kPrefixKey = "metrics_prefix";

void check_prefix(Draft& draft, const DraftNode& node) {
  const Name& prefix = node.spec->metrics_prefix;
  if (prefix.text.empty() || (is_plain_name(prefix.text) && !depends_on_timing(prefix.text + "/"))) return;
  draft.error("bad-name", prefix.where,
              sluice::quoted(prefix.text) + " cannot stand in front of the metrics of '" + node.name() + "'",
              is_plain_name(prefix.text) ? "time, memory and engine are the groups of what depends on timing"
                                         : "letters, digits, _ and -");
}

std::vector<std::string> names_of(const Draft& draft, const DraftNode& node) {
  std::vector<std::string> names;
  for (const MetricSpec& metric : node.needs->metrics) {
    if (metric.is_family) continue;
    for (const std::string& name : engine::names_of(metric))
      names.push_back(prefixed_metric(metrics_prefix_of(draft, node), name));
  }
  return names;
}

bool is_mixture(const Draft& draft, const DraftNode& node, const std::string& key) {
  return std::ranges::any_of(node.needs->models, [&](const ModelNeed& need) {
    const int model = need.param == key ? draft.find_model(need.model) : -1;
    return model >= 0 && draft.models[static_cast<size_t>(model)].facts.is_mixture();
  });
}

bool train_one_model(const DraftNode& a, const DraftNode& b) {
  const auto trained_by_a = [&](const ModelNeed& need) {
    return need.use == ModelUse::kUpdates && std::ranges::any_of(a.needs->models, [&](const ModelNeed& other) {
             return other.use == ModelUse::kUpdates && other.model == need.model;
           });
  };
  return std::ranges::any_of(b.needs->models, trained_by_a);
}

bool write_one_column(const DraftNode& a, const DraftNode& b) {
  std::set<std::string> names;
  for (const ColumnSpec& column : a.needs->writes) names.insert(column.name);
  return std::ranges::any_of(b.needs->writes, [&](const ColumnSpec& column) { return names.contains(column.name); });
}

std::string listed(std::vector<std::string> names) {
  constexpr size_t kListed = 3;
  const size_t more = names.size() > kListed ? names.size() - kListed : 0;
  names.resize(names.size() - more);
  return join(names, ", ") + (more > 0 ? " and " + std::to_string(more) + " more" : "");
}

void report_second_recorder(Draft& draft, const DraftNode& node, const DraftNode& first, const std::vector<std::string>& names) {
  const bool both_make_groups = node.type->kind != NodeKind::kOrdinary && first.type->kind != NodeKind::kOrdinary;
  if ((both_make_groups && node.path == first.path) || write_one_column(first, node) || train_one_model(first, node))
    return;  // reported as that
  const std::string shown = node.spec->metrics_prefix.text.empty()
                                ? kPrefixKey + std::string(" = ") + sluice::quoted(node.name()) + " in '" + node.name() +
                                      "' makes it " + prefixed_metric(node.name(), names.front())
                                : "give one of the two another " + std::string(kPrefixKey);
  draft.error("metric-recorded-twice", place_of(node),
              "'" + node.name() + "' records " + listed(names) + ", which '" + first.name() + "' records too", {}, shown);
}

}  // namespace

void check_metrics(Draft& draft) {
  std::map<std::string, int> recorders;
  for (size_t i = 0; i < draft.nodes.size(); ++i) {
    DraftNode& node = draft.nodes[i];
    check_prefix(draft, node);
    if (!node.needs) continue;
    std::vector<MetricSpec>& metrics = node.needs->metrics;
    std::erase_if(metrics, [&](const MetricSpec& metric) {
      return !metric.of_mixture.empty() && !is_mixture(draft, node, metric.of_mixture);
    });
    const DraftPath* const path = draft.path_of(node);
    const bool gives_batches = path != nullptr && path->maker() == static_cast<int>(i);
    metrics::declare(node.type->kind, *node.needs, gives_batches, draft.measures(node), metrics);
    for (MetricSpec& metric : metrics) metric.name = metric_of_node(metric.name, node.name());
    check_metric_names(draft, node);
    std::map<int, std::vector<std::string>> recorded_before;  // by node
    for (const std::string& name : names_of(draft, node)) {
      const auto [found, first] = recorders.emplace(name, static_cast<int>(i));
      if (!first && found->second != static_cast<int>(i)) recorded_before[found->second].push_back(name);
    }
    for (const auto& [first, names] : recorded_before) report_second_recorder(draft, node, draft.node(first), names);
  }
}

namespace {

void check_recorded(Draft& draft, const std::string& wanted, const SourceSpan& where) {
  if (metrics::is_of_family(draft.plan, wanted)) return;
  const std::vector<std::string> names = metrics::all_names(draft.plan);
  if (std::ranges::find(names, wanted) != names.end()) return;
  const std::string near = nearest_metric(wanted, names);
  draft.error("unknown-metric", where, "no node records a metric " + sluice::quoted(wanted),
              near.empty() ? "" : "did you mean " + sluice::quoted(near) + "?",
              near.empty() ? "metrics of this pipeline are such as " + listed(names) : "");
}

void check_stop_rule(Draft& draft, const StopWhen& rule, const SourceSpan& where) {
  check_recorded(draft, rule.metric, where);
  if (!rule.at_least && !rule.at_most && !rule.patience) {
    draft.error("stop-without-rule", where, "stop_when names " + sluice::quoted(rule.metric) + ", but no value that ends the run",
                {}, "stop_when = { metric = " + sluice::quoted(rule.metric) + ", at_least = ... }, or at_most, or patience");
  } else if (depends_on_timing(rule.metric)) {
    draft.error("stop-without-rule", where, "a run cannot end by " + sluice::quoted(rule.metric) + ", which depends on timing",
                "it would end elsewhere each time", "take a metric of another group than time, memory and engine");
  }
}

// It says which value is the best, where nobody looks for that. As it is by default it may stand anywhere.
void refuse_best(Draft& draft, Best best, const Table& table, const char* beside) {
  const Entry* const written = table.find("best");
  if (written == nullptr || best == Best::kHighest) return;
  draft.error("setting-without-effect", written->key_where, std::string("best has no effect without ") + beside, {},
              std::string("write ") + beside + ", or remove best");
}

}  // namespace

void check_wanted_metrics(Draft& draft) {
  check_reserved_metrics(draft);
  const auto& keep_best = draft.plan.checkpoint.keep_best;
  if (keep_best) check_recorded(draft, *keep_best, place_of(draft.spec.checkpoint, "keep_best", draft.spec.where));
  if (!keep_best) refuse_best(draft, draft.plan.checkpoint.best, draft.spec.checkpoint, "keep_best");
  const auto& stop = draft.plan.pipeline.stop_when;
  const Entry* const rule = draft.spec.pipeline.find("stop_when");
  const auto* const written = rule == nullptr ? nullptr : std::get_if<Table>(&rule->value.data);
  if (stop && !stop->patience && written != nullptr) refuse_best(draft, stop->best, *written, "patience");
  if (stop) check_stop_rule(draft, *stop, place_of(draft.spec.pipeline, "stop_when", draft.spec.where));
}

}  // namespace sluice::engine::checking
