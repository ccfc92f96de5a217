#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/contract/columns/token_budget.h"
#include "engine/schedule/stages/executor.h"

namespace sluice::engine {

/// Where tests put parts that fail into a run, as they do with files by RunOptions::files. What is empty is the real thing.
struct ReplaceableParts {
  /// Makes the budget; the arguments are those of TokenBudget.
  std::function<std::unique_ptr<TokenBudget>(int64_t capacity, std::function<void()> on_release)> budget;

  /// Puts something around an executor, by index of Plan::executors. May throw, as when the system has no thread left.
  std::function<std::unique_ptr<Executor>(int index, std::unique_ptr<Executor> executor)> executor;
};

}  // namespace sluice::engine
