#include "nodes/models/sampled_weights.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::nodes {

SampledWeights::SampledWeights(const models::ModelConfig& config, models::Precision precision, at::Device device,
                               int64_t readable, std::optional<CommonCopies> common)
    : config_(config), precision_(precision), device_(device), common_(std::move(common)) {
  if (common_) common_->prepare(models::PackedWeights::bytes_for(config, precision), config.layers, readable);
  for (int64_t i = 0; i < readable; ++i) copies_.push_back({.version = -1, .weights = models::PackedWeights(precision)});
}

void SampledWeights::take(int64_t version, const models::Weights& live) {
  Copy* copy = nullptr;
  {
    std::unique_lock lock(mutex_);
    SLUICE_CHECK(newest_ < 0 || version == newest_ + 1,
                 "version " + std::to_string(version) + " is published after " + std::to_string(newest_));
    if (!copies_.empty()) {
      copy = &slot_of(version);
      let_go_.wait(lock, [copy] { return copy->holders == 0; });
      copy->version = -1;
    }
  }
  if (copy != nullptr) {
    // Outside the lock: nobody may look at this slot now, and samplers go on with the others.
    const bool first = copy->weights.empty();
    pack(*copy, live);
    if (first) bytes_ += copy->weights.bytes();
  }
  std::lock_guard lock(mutex_);
  if (copy != nullptr) copy->version = version;
  newest_ = version;
}

void SampledWeights::pack(Copy& copy, const models::Weights& live) {
  if (common_)
    common_->pack(live, copy.weights, &copy - copies_.data());
  else
    copy.weights.pack(live);
}

int64_t SampledWeights::bytes() const {
  const int64_t all = bytes_.load(std::memory_order_relaxed);
  return common_ ? common_->part_of(all) : all;
}

SampledWeights::Lease SampledWeights::newest() const {
  const std::lock_guard lock(mutex_);
  SLUICE_CHECK(!copies_.empty() && newest_ >= 0, "a model that nobody was to sample from is sampled");
  Copy& copy = copies_[static_cast<size_t>(newest_) % copies_.size()];
  ++copy.holders;
  const auto let_go = [this, &copy](const models::PackedWeights*) {
    const std::lock_guard held(mutex_);
    if (--copy.holders == 0) let_go_.notify_all();
  };
  return {.weights = {&copy.weights, let_go}, .version = newest_};
}

void SampledWeights::begin_with(models::PackedWeights&& packed) {
  SLUICE_CHECK(newest_ < 0 && copies_.size() == 1, "a model begins with one version");
  copies_.front().weights = std::move(packed);
  copies_.front().version = newest_ = 0;
  bytes_ = copies_.front().weights.bytes();
}

void SampledWeights::forget() {
  std::lock_guard lock(mutex_);
  newest_ = -1;
  for (Copy& copy : copies_) copy.version = -1;
}

const models::PackedWeights& SampledWeights::at(int64_t version) const {
  std::lock_guard lock(mutex_);
  SLUICE_CHECK(!copies_.empty(), "a model that nobody was to sample from is sampled");
  const Copy& copy = copies_[static_cast<size_t>(version) % copies_.size()];
  SLUICE_CHECK(copy.version == version, "version " + std::to_string(version) + " is not readable");
  return copy.weights;
}

}  // namespace sluice::nodes
