#include "engine/plan/filter_streams.h"

#include <algorithm>
#include <set>

namespace sluice::engine {

FilterStreams::FilterStreams(const Plan& plan) {
  for (size_t path = 0; path < plan.paths.size(); ++path)
    readers_[-1 - static_cast<int>(path)].columns.resize(plan.columns.size());
  const auto stream_at = [](const PlanNode& node) { return node.stream < 0 ? -1 - node.path : node.stream; };
  std::vector<int> filters;
  std::map<int, std::set<int>> needed;  // by stream: columns that its nodes read
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    if (node.type->kind != NodeKind::kOrdinary) continue;
    const int stream = stream_at(node);
    if (node.needs.drops_groups) {
      filters.push_back(static_cast<int>(i));
      readers_[static_cast<int>(i)].columns.resize(plan.columns.size());
    }
    Readers& readers = readers_[stream];
    for (const int column : node.reads) {
      ++readers.columns[static_cast<size_t>(column)];
      needed[stream].insert(column);
    }
    if (!node.reads.empty() || node.needs.drops_groups) ++readers.tokens;
  }
  // The last filter first: what it hands on, the one in front of it must hand on too.
  for (auto filter = filters.rbegin(); filter != filters.rend(); ++filter) {
    const PlanNode& node = plan.nodes[static_cast<size_t>(*filter)];
    const int stream = stream_at(node);
    for (const int column : needed[*filter]) {
      const int writer = plan.columns[static_cast<size_t>(column)].writer;
      const bool written_behind = writer == *filter || plan.nodes[static_cast<size_t>(writer)].stream == *filter;
      if (written_behind) continue;
      carried_[*filter].push_back(column);
      if (std::ranges::find(node.reads, column) == node.reads.end()) ++readers_[stream].columns[static_cast<size_t>(column)];
      needed[stream].insert(column);
    }
    carried_[*filter];  // may be empty, but is known
  }
}

}  // namespace sluice::engine
