#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "models/config/precision.h"
#include "models/layers/weights.h"
#include "models/sample/packed_weights.h"

namespace sluice::nodes {

/// The versions of a model's weights that others may sample with while it is trained, each packed for generation.
///
/// With one kept version there is one, which publish() packs anew: right when nothing is sampled between the update of the
/// weights and their publication, which the plan knows. With more there are as many, and the memory of the oldest is used again.
/// With none nobody samples, and nothing is packed.
///
/// publish() may run on another thread than at(). `live` must outlive this and its tensors must stay the same ones.
class PublishedWeights {
 public:
  /// Publishes version 0.
  PublishedWeights(const models::Weights& live, int64_t kept_versions, models::Precision precision);

  /// Makes the live weights `version`, which is one more than the last unless all were forgotten. Ends the life of version -
  /// kept_versions.
  void publish(int64_t version);

  /// Forgets all versions; the next may be any. Nobody samples meanwhile.
  void restart();

  /// Throws InternalError unless `version` is among the kept ones. The reference is valid until kept_versions later ones are
  /// published.
  const models::PackedWeights& at(int64_t version) const;

  /// Of all versions that were packed so far; from any thread.
  int64_t packed_bytes() const { return packed_bytes_.load(std::memory_order_relaxed); }

 private:
  struct Copy {
    int64_t version = -1;  // -1: none, or being written
    models::PackedWeights weights;
  };

  Copy& slot_of(int64_t version) { return copies_[static_cast<size_t>(version) % copies_.size()]; }

  const models::Weights& live_;
  mutable std::mutex mutex_;  // guards newest_ and the versions of copies_
  int64_t newest_ = -1;       // -1: none
  std::atomic<int64_t> packed_bytes_ = 0;
  std::vector<Copy> copies_;  // a ring
};

}  // namespace sluice::nodes
