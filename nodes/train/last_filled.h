#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace sluice::nodes {

/// The place of the last of `parts` that is not empty; nothing where all are. Of what a barrier has of each micro-batch for a
/// step: the micro-batch with the last backward.
template <class Part>
std::optional<size_t> last_filled(const std::vector<Part>& parts) {
  for (size_t place = parts.size(); place-- > 0;)
    if (!parts[place].empty()) return place;
  return std::nullopt;
}

}  // namespace sluice::nodes
