#pragma once

#include <cstdint>
#include <string>

namespace sluice::engine {

/// Bytes, predicted: upper bounds, of each class and so of all together.
struct PlanMemory {
  int64_t weights_bytes = 0;
  int64_t gradient_bytes = 0;
  int64_t optimizer_bytes = 0;
  int64_t copy_bytes = 0;  // of what is saved, and older versions that checkpoints need
  int64_t kv_bytes = 0;
  int64_t column_bytes = 0;
  int64_t activation_bytes = 0;
  int64_t slack_bytes = 0;    // what an allocator holds beside what it has given out
  int64_t machine_bytes = 0;  // not predicted: what there is; 0: not known

  int64_t total_bytes() const;
};

/// What a rank takes of a device beside the CPU.
struct PlanDevice {
  std::string name;  // "cuda:0"
  PlanMemory memory;
};

}  // namespace sluice::engine
