#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "models/weights.h"

namespace sluice::nodes {

/// The versions of a model's weights that others may sample with while it is trained.
///
/// With at most one kept version the published weights are the live ones: no copy, and publishing is free. That is right when
/// nothing is sampled between the update of the weights and their publication, which the plan knows. With more, each version is a
/// copy, and the memory of the oldest is used again.
///
/// publish() may run on another thread than at(). `live` must outlive this and its tensors must stay the same ones.
class PublishedWeights {
 public:
  /// Publishes version 0.
  PublishedWeights(const models::Weights& live, int64_t kept_versions);

  /// Makes the live weights `version`, which is one more than the last. Ends the life of version - kept_versions.
  void publish(int64_t version);

  /// Throws InternalError unless `version` is among the kept ones. The reference is valid until kept_versions later ones are
  /// published.
  const models::Weights& at(int64_t version) const;

  /// Of the copies that were made so far; from any thread.
  int64_t copied_bytes() const { return copied_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Copy {
    int64_t version = -1;  // -1: none, or being written
    models::Weights weights;
  };

  Copy& slot_of(int64_t version) { return copies_[static_cast<size_t>(version) % copies_.size()]; }

  const models::Weights& live_;
  mutable std::mutex mutex_;  // guards newest_ and the versions of copies_
  int64_t newest_ = -1;
  std::atomic<int64_t> copied_bytes_ = 0;
  std::vector<Copy> copies_;  // a ring; empty when live and published are one
};

}  // namespace sluice::nodes
