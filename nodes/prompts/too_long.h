#pragma once

#include <array>
#include <utility>

namespace sluice::nodes {

/// What to do with a prompt, or a row, that has more tokens than its limit.
enum class TooLong { kRefuse, kDrop };

constexpr std::array<std::pair<TooLong, const char*>, 2> enum_names(TooLong) {
  return {{{TooLong::kRefuse, "refuse"}, {TooLong::kDrop, "drop"}}};
}

}  // namespace sluice::nodes
