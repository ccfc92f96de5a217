#include "engine/observe/stop_rule.h"

#include <cmath>
#include <utility>

#include "base/text/strings.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::engine {

void StopRule::look_at(int64_t iteration, double value) {
  if (decided_by_ || !std::isfinite(value)) return;
  const bool better = is_better(value);
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) best_ = value;
  const std::string is = when_.metric + " is " + real_text(value);
  if (when_.at_least && value >= *when_.at_least)
    reason_ = is + ", at least " + real_text(*when_.at_least);
  else if (when_.at_most && value <= *when_.at_most)
    reason_ = is + ", at most " + real_text(*when_.at_most);
  else if (when_.patience && since_best_ >= *when_.patience)
    reason_ = when_.metric + " was not better than " + real_text(*best_) + " for " + plural(since_best_, "value");
  if (!reason_.empty()) decided_by_ = iteration;
}

void StopRule::begin_with(double value) {
  if (std::isfinite(value)) best_ = value;
}

bool StopRule::is_better(double value) const {
  if (!best_) return true;
  return when_.best == Best::kHighest ? value > *best_ : value < *best_;
}

void show_iteration(StopRule& rule, const Plan& plan, int64_t iteration, double value) {
  if (metrics::tells_of_first_weights(plan, rule.metric(), iteration))
    rule.begin_with(value);
  else
    rule.look_at(iteration, value);
}

}  // namespace sluice::engine
