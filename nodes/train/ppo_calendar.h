#pragma once

#include <cstdint>
#include <optional>

namespace sluice::nodes {

/// What the steps of the engine are for in an iteration of train_ppo, where it is a barrier.
///
/// Optimizer step k trains on mini-batch k, counted over all epochs. Each takes as many steps of the engine as the objective has
/// looks, and one more. Where advantages are whitened there is one in front, since the moments of a mini-batch are added up while
/// the one before it is trained on.
struct PpoCalendar {
  int64_t epochs = 1;
  int64_t mini_batches = 1;  // of an epoch
  int looks = 0;
  bool whitens = false;

  /// What is due in a step of the engine.
  struct Due {
    std::optional<int64_t> mini_batch;  // that is looked at or trained on; none in the step in front
    std::optional<int> look;            // none: the mini-batch is trained on
    std::optional<int64_t> whitened;    // the mini-batch whose moments are added up
  };

  int64_t steps() const;
  Due at(int64_t step) const;
};

}  // namespace sluice::nodes
