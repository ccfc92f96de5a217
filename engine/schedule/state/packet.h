#pragma once

#include <cstdint>
#include <memory>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/node.h"

namespace sluice::engine {

/// What travels along the edges of the flow graph: a micro-batch, or the end of an iteration. A handle; forks copy it.
struct Packet {
  int64_t sequence = 0;  // counts all packets of a path; joins match on it
  Iteration iteration;
  std::shared_ptr<BatchState> batch;  // null: the end of the iteration
};

}  // namespace sluice::engine
