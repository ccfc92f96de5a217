#include "nodes/models/published_weights.h"

#include <string>

#include "base/error.h"

namespace sluice::nodes {

PublishedWeights::PublishedWeights(const models::Weights& live, int64_t kept_versions, models::Precision precision)
    : live_(live) {
  for (int64_t i = 0; i < kept_versions; ++i) copies_.push_back({.version = -1, .weights = models::PackedWeights(precision)});
  publish(0);
}

void PublishedWeights::publish(int64_t version) {
  Copy* copy = nullptr;
  {
    std::lock_guard lock(mutex_);
    SLUICE_CHECK(newest_ < 0 || version == newest_ + 1,
                 "version " + std::to_string(version) + " is published after " + std::to_string(newest_));
    if (!copies_.empty()) {
      copy = &slot_of(version);
      copy->version = -1;
    }
  }
  if (copy != nullptr) {
    // Outside the lock: nobody may look at this slot now, and samplers go on with the others.
    const bool first = copy->weights.empty();
    copy->weights.pack(live_);
    if (first) packed_bytes_ += copy->weights.bytes();
  }
  std::lock_guard lock(mutex_);
  if (copy != nullptr) copy->version = version;
  newest_ = version;
}

void PublishedWeights::restart() {
  std::lock_guard lock(mutex_);
  newest_ = -1;
  for (Copy& copy : copies_) copy.version = -1;
}

const models::PackedWeights& PublishedWeights::at(int64_t version) const {
  std::lock_guard lock(mutex_);
  SLUICE_CHECK(!copies_.empty(), "a model that nobody was to sample from is sampled");
  const Copy& copy = copies_[static_cast<size_t>(version) % copies_.size()];
  SLUICE_CHECK(copy.version == version, "version " + std::to_string(version) + " is not among the published ones");
  return copy.weights;
}

}  // namespace sluice::nodes
