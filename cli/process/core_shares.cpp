#include "cli/process/core_shares.h"

#include <cstdint>

namespace sluice::cli {

std::vector<int> share_of_cores(const std::vector<int>& cores, int index, int count) {
  const auto have = static_cast<std::int64_t>(cores.size());
  if (have == 0) return {};
  if (have < count) return {cores[static_cast<size_t>(index % have)]};
  return {cores.begin() + index * have / count, cores.begin() + (index + 1) * have / count};
}

}  // namespace sluice::cli
