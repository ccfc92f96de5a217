#include "engine/observe/stop_rule.h"

#include <cmath>
#include <utility>

#include "base/strings.h"

namespace sluice::engine {

void StopRule::look_at(int64_t iteration, double value) {
  if (decided_by_ || std::isnan(value)) return;
  const bool better = is_better(value);
  since_best_ = better ? 0 : since_best_ + 1;
  if (better) best_ = value;
  const std::string is = when_.metric + " is " + real_text(value);
  if (when_.at_least && value >= *when_.at_least)
    reason_ = is + ", at least " + real_text(*when_.at_least);
  else if (when_.at_most && value <= *when_.at_most)
    reason_ = is + ", at most " + real_text(*when_.at_most);
  else if (when_.patience && since_best_ >= *when_.patience)
    reason_ = when_.metric + " was not better than " + real_text(*best_) + " for " + std::to_string(since_best_) + " values";
  if (!reason_.empty()) decided_by_ = iteration;
}

bool StopRule::is_better(double value) const {
  if (!best_) return true;
  return when_.best == Best::kHighest ? value > *best_ : value < *best_;
}

}  // namespace sluice::engine
