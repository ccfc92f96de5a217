#pragma once

#include <span>

#include "engine/contract/columns/micro_batch.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {

/// How much each action counts, [A]; empty where no node says so, and then each counts 1. Shares the column's memory.
inline std::span<const float> mask_of(const engine::MicroBatch& batch) {
  return batch.has(columns::kMask.spec()) ? batch.read(columns::kMask) : std::span<const float>();
}

}  // namespace sluice::nodes
