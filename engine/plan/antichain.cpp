#include "engine/plan/antichain.h"

#include <algorithm>
#include <deque>
#include <limits>

#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

/// Flow from each element ("above") into elements that it precedes ("below"); both sides can take an element's weight. Blocking
/// flows along shortest paths, level by level (Dinic).
class Flow {
 public:
  Flow(const std::vector<int64_t>& weights, const std::function<bool(size_t, size_t)>& precedes)
      : above_(weights), below_(weights), next_(weights.size()), moved_(weights.size()) {
    for (size_t a = 0; a < weights.size(); ++a) {
      for (size_t b = 0; b < weights.size(); ++b) {
        if (weights[a] > 0 && weights[b] > 0 && precedes(a, b)) next_[a].push_back(b);
      }
      moved_[a].assign(next_[a].size(), 0);
    }
    into_.resize(weights.size());
    for (size_t a = 0; a < next_.size(); ++a) {
      for (size_t e = 0; e < next_[a].size(); ++e) into_[next_[a][e]].emplace_back(a, e);
    }
  }

  int64_t largest() {
    int64_t total = 0;
    while (find_levels()) {
      edge_above_.assign(above_.size(), 0);
      edge_below_.assign(above_.size(), 0);
      for (size_t a = 0; a < above_.size(); ++a) {
        while (above_[a] > 0) {
          const int64_t pushed = push_above(a, above_[a]);
          if (pushed == 0) break;
          above_[a] -= pushed;
          total += pushed;
        }
      }
    }
    return total;
  }

 private:
  static constexpr int kUnseen = -1;

  // Levels of the elements above (even) and below (odd); true if one below has room.
  bool find_levels() {
    level_above_.assign(above_.size(), kUnseen);
    level_below_.assign(above_.size(), kUnseen);
    std::deque<std::pair<size_t, bool>> open;  // element, above?
    for (size_t a = 0; a < above_.size(); ++a) {
      if (above_[a] > 0) level_above_[a] = 0, open.emplace_back(a, true);
    }
    bool room = false;
    for (; !open.empty(); open.pop_front()) {
      const auto [at, is_above] = open.front();
      if (is_above) {
        for (const size_t b : next_[at]) {
          if (level_below_[b] != kUnseen) continue;
          level_below_[b] = level_above_[at] + 1;
          open.emplace_back(b, false);
        }
        continue;
      }
      room = room || below_[at] > 0;
      for (const auto& [a, e] : into_[at]) {
        if (moved_[a][e] == 0 || level_above_[a] != kUnseen) continue;
        level_above_[a] = level_below_[at] + 1;
        open.emplace_back(a, true);
      }
    }
    return room;
  }

  int64_t push_above(size_t a, int64_t limit) {
    for (size_t& e = edge_above_[a]; e < next_[a].size(); ++e) {
      const size_t b = next_[a][e];
      if (level_below_[b] != level_above_[a] + 1) continue;
      const int64_t pushed = push_below(b, limit);
      if (pushed == 0) continue;
      moved_[a][e] += pushed;
      return pushed;
    }
    return 0;
  }

  int64_t push_below(size_t b, int64_t limit) {
    if (below_[b] > 0) {
      const int64_t pushed = std::min(limit, below_[b]);
      below_[b] -= pushed;
      return pushed;
    }
    for (size_t& i = edge_below_[b]; i < into_[b].size(); ++i) {
      const auto [a, e] = into_[b][i];
      if (moved_[a][e] == 0 || level_above_[a] != level_below_[b] + 1) continue;
      const int64_t pushed = push_above(a, std::min(limit, moved_[a][e]));
      if (pushed == 0) continue;
      moved_[a][e] -= pushed;
      return pushed;
    }
    return 0;
  }

  std::vector<int64_t> above_, below_;                        // what each side can still take
  std::vector<std::vector<size_t>> next_;                     // edges from above to below
  std::vector<std::vector<int64_t>> moved_;                   // flow on them
  std::vector<std::vector<std::pair<size_t, size_t>>> into_;  // the same by the element below: element above, number of its edge
  std::vector<int> level_above_, level_below_;
  std::vector<size_t> edge_above_, edge_below_;  // the first edge that may still be of use
};

}  // namespace

int64_t heaviest_antichain(const std::vector<int64_t>& weights, const std::function<bool(size_t, size_t)>& precedes) {
  int64_t sum = 0;
  for (const int64_t weight : weights) sum = saturating_sum(sum, weight);
  if (sum == std::numeric_limits<int64_t>::max()) return sum;
  return sum - Flow(weights, precedes).largest();
}

}  // namespace sluice::engine
