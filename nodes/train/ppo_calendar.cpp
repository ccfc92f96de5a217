#include "nodes/train/ppo_calendar.h"

namespace sluice::nodes {

int64_t PpoCalendar::steps() const { return epochs * mini_batches * (looks + 1) + (whitens ? 1 : 0); }

PpoCalendar::Due PpoCalendar::at(int64_t step) const {
  if (whitens && step-- == 0) return {.mini_batch = {}, .look = {}, .whitened = 0};
  const int64_t mini_batch = step / (looks + 1), next = mini_batch + 1;
  const auto look = static_cast<int>(step % (looks + 1));
  if (look < looks) return {.mini_batch = mini_batch, .look = look, .whitened = {}};
  const bool whitens_next = whitens && next < epochs * mini_batches;
  return {.mini_batch = mini_batch, .look = {}, .whitened = whitens_next ? std::optional(next) : std::nullopt};
}

}  // namespace sluice::nodes
