#include "engine/contract/contract.h"

#include <algorithm>

namespace sluice::engine {

const char* name_of(ModelUse use) {
  switch (use) {
    case ModelUse::kReads:
      return "reads";
    case ModelUse::kSamples:
      return "samples";
    case ModelUse::kUpdates:
      return "updates";
    case ModelUse::kAverages:
      return "averages";
    case ModelUse::kPublishes:
      return "publishes";
  }
  return "";
}

MetricSpec metric_of_schedule(const std::string& metric, const std::string& key) {
  return {.name = metric, .kind = Metric::kValue, .doc = key + " of the iteration, where it is scheduled"};
}

void declare_schedules(NodeNeeds& needs) {
  for (const NamedSchedule& schedule : needs.schedules) {
    if (schedule.metric.empty() || !schedule.number.changes()) continue;
    if (std::ranges::find(needs.metrics, schedule.metric, &MetricSpec::name) != needs.metrics.end())
      continue;  // by its component
    const std::string key = schedule.key.substr(schedule.key.rfind('.') + 1);
    needs.metrics.push_back(metric_of_schedule(schedule.metric, key));
  }
}

void Findings::without_effect_beside(std::string_view key, std::string_view other, std::string message, std::string help) {
  without_effect(key, std::move(message), std::move(help));
  const Entry* beside = table_.find(other);
  if (beside == nullptr || !beside->key_where.known()) return;
  const SourceSpan& where = beside->key_where;
  problems_.back().notes.push_back(std::string(other) + " stands at " + where.source->name + ":" + std::to_string(where.line));
}

void Findings::add(const char* kind, Severity severity, std::string_view key, const std::string& message,
                   const std::string& help) {
  const Entry* entry = table_.find(key);
  problems_.push_back({.kind = kind,
                       .where = entry != nullptr ? entry->value.where : table_.where,
                       .message = message,
                       .caret = {},
                       .notes = {},
                       .help = help,
                       .severity = severity});
}

}  // namespace sluice::engine
