#include "nodes/published_weights.h"

#include <string>

#include "base/error.h"

namespace sluice::nodes {

PublishedWeights::PublishedWeights(const models::Weights& live, int64_t kept_versions) : live_(live) {
  if (kept_versions > 1) copies_.resize(static_cast<size_t>(kept_versions));
  publish(0);
}

void PublishedWeights::publish(int64_t version) {
  Copy* copy = nullptr;
  {
    std::lock_guard lock(mutex_);
    SLUICE_CHECK(version == newest_ + 1, "version " + std::to_string(version) + " is published after " + std::to_string(newest_));
    if (!copies_.empty()) {
      copy = &slot_of(version);
      copy->version = -1;
    }
  }
  if (copy != nullptr) {
    // Outside the lock: nobody may look at this slot now, and samplers go on with the others.
    if (copy->weights.embedding.defined()) {
      copy->weights.copy_from(live_);
    } else {
      copy->weights = live_.clone();
      for (const auto& [name, tensor] : copy->weights.named()) copied_bytes_ += static_cast<int64_t>(tensor.nbytes());
    }
  }
  std::lock_guard lock(mutex_);
  if (copy != nullptr) copy->version = version;
  newest_ = version;
}

const models::Weights& PublishedWeights::at(int64_t version) const {
  std::lock_guard lock(mutex_);
  if (copies_.empty()) {
    SLUICE_CHECK(version == newest_,
                 "version " + std::to_string(version) + " is asked for, published is " + std::to_string(newest_));
    return live_;
  }
  const Copy& copy = copies_[static_cast<size_t>(version) % copies_.size()];
  SLUICE_CHECK(copy.version == version, "version " + std::to_string(version) + " is not among the published ones");
  return copy.weights;
}

}  // namespace sluice::nodes
