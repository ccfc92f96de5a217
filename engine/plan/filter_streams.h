#pragma once

#include <map>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// Who reads what, in front of and after each filter. A stream is the micro-batches that the nodes between two filters share:
/// the intake of a path begins one, and so does every filter (PlanNode::stream is the one that arrives). Constant after
/// construction.
class FilterStreams {
 public:
  explicit FilterStreams(const Plan& plan);

  /// Of what the intake of a path hands on, and of what a filter does.
  const Readers& readers_at_intake(int path) const { return readers_.at(-1 - path); }
  const Readers& readers_behind(int filter) const { return readers_.at(filter); }

  /// Columns that are written in front of the filter and needed after it.
  const std::vector<int>& carried_by(int filter) const { return carried_.at(filter); }

 private:
  std::map<int, Readers> readers_;  // by stream: a filter, or -1 - path
  std::map<int, std::vector<int>> carried_;
};

}  // namespace sluice::engine
