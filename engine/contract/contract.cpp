#include "engine/contract/contract.h"

#include <algorithm>

namespace sluice::engine {

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

}  // namespace sluice::engine
