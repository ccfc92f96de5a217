#include "cli/process/core_shares.h"

#include <cstdint>

namespace sluice::cli {

std::vector<int> share_of_cores(const std::vector<int>& cores, int index, int count) {
  const auto have = static_cast<std::int64_t>(cores.size());
  const std::int64_t first = index * have / count;
  const std::int64_t behind = have < count ? ((index + 1) * have + count - 1) / count : (index + 1) * have / count;
  return {cores.begin() + first, cores.begin() + behind};
}

}  // namespace sluice::cli
