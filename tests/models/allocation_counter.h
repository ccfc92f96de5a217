#pragma once

#include <cstdint>
#include <functional>

namespace sluice::models {

/// Calls of operator new, of all threads, while `work` runs. The test program replaces the operator; what is allocated by malloc
/// is not seen.
int64_t allocations_in(const std::function<void()>& work);

}  // namespace sluice::models
