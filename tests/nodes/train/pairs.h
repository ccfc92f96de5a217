#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "nodes/columns/columns.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::testing {

inline engine::Group scored(const std::vector<TinySample>& samples, const std::vector<float>& scores,
                            std::optional<float> margin = {}) {
  engine::Group group = group_of(samples);
  std::ranges::copy(scores, group.write(columns::kScore).begin());
  if (margin) group.write(columns::kMargin)[0] = *margin;
  return group;
}

/// Two pairs, one of them among three samples, and a group without one.
inline std::vector<engine::Group> pairs(std::optional<float> margin = {}) {
  return {scored({{{5, 17, 42, 8, 11, 90}, 3}, {{5, 17, 42, 33}, 1}}, {0, 1}, margin),
          scored({{{60, 61, 7, 7}, 2}, {{60, 61, 13, 2, 81}, 3}, {{60, 61, 9}, 1}}, {3, 2, -1}, margin),
          scored({{{71, 3, 19}, 1}, {{71, 3, 44}, 1}}, {1, 1}, margin)};
}

}  // namespace sluice::nodes::testing
