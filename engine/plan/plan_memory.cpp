#include "engine/plan/plan_memory.h"

#include "engine/plan/saturating.h"

namespace sluice::engine {

int64_t PlanMemory::total_bytes() const {
  int64_t total = 0;
  for (const int64_t bytes :
       {weights_bytes, gradient_bytes, optimizer_bytes, copy_bytes, kv_bytes, column_bytes, activation_bytes, slack_bytes}) {
    total = saturating_sum(total, bytes);
  }
  return total;
}

}  // namespace sluice::engine
