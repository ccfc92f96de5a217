#pragma once

#include <chrono>

namespace sluice::nodes {

/// Of a time that a user gives; rounded up, so that a short one does not become none.
inline std::chrono::milliseconds milliseconds_of(double seconds) {
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
}

}  // namespace sluice::nodes
