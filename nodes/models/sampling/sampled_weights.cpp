#include "nodes/models/sampling/sampled_weights.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/devices/streams.h"
#include "models/portable/product.h"

namespace sluice::nodes {

SampledWeights::SampledWeights(const models::ModelConfig& config, models::Precision precision, at::Device device,
                               int64_t readable, std::optional<CommonCopies> common, const models::ColumnShare& share)
    : config_(config), precision_(precision), device_(device), common_(std::move(common)), share_(share) {
  if (common_) common_->prepare(config, precision, readable);
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
      changed_.wait(lock, [copy] { return copy->holders == 0; });
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
  changed_.notify_all();
}

void SampledWeights::pack(Copy& copy, const models::Weights& live) {
  if (common_)
    common_->pack(live, copy.weights, &copy - copies_.data());
  else if (copy.only_trained_differs)
    copy.weights.pack_unwritten(live);
  else
    copy.weights.pack(models::part_of(live, share_));
  copy.only_trained_differs = trained_on_device_;
  models::finish_work_on(device_);
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
    if (--copy.holders == 0) changed_.notify_all();
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
  for (Copy& copy : copies_) copy.version = -1, copy.only_trained_differs = false;
}

void SampledWeights::be_trained_by(models::AdamW& optimizer, const models::Weights& live) {
  trained_on_device_ = !device_.is_cpu() && !common_ && share_.is_whole();
  if (!trained_on_device_) return;
  if (readable() == 1 && optimizer.owners() == 1) have_steps_write(optimizer, live);
  for (Copy& copy : copies_) copy.only_trained_differs = !copy.weights.empty();
}

void SampledWeights::have_steps_write(models::AdamW& optimizer, const models::Weights& live) {
  const models::FlatParameters& flat = optimizer.parameters();
  Copy& only = copies_.front();
  only.weights = models::PackedWeights(precision_);  // there is no memory for two
  const auto type = models::portable::dtype_of(precision_);
  const at::Tensor matrices = at::empty({flat.size() - flat.vector_floats()}, at::TensorOptions(type).device(device_));
  only.weights.place_on_device(flat.matrix_views(matrices));
  pack(only, live);
  if (only.weights.written() > 0) optimizer.write_matrices_to(matrices);  // adapters are merged instead
}

const models::PackedWeights& SampledWeights::at(int64_t version) const {
  std::lock_guard lock(mutex_);
  SLUICE_CHECK(!copies_.empty(), "a model that nobody was to sample from is sampled");
  const Copy& copy = copies_[static_cast<size_t>(version) % copies_.size()];
  SLUICE_CHECK(copy.version == version, "version " + std::to_string(version) + " is not readable");
  return copy.weights;
}

int64_t SampledWeights::version_of(const models::PackedWeights& weights) const {
  std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(copies_, [&](const Copy& copy) { return &copy.weights == &weights; });
  SLUICE_CHECK(found != copies_.end() && found->version >= 0, "weights that are no version");
  return found->version;
}

const models::PackedWeights& SampledWeights::wait_for(int64_t version) const {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return given_up_ || newest_ >= version; });
    if (given_up_) throw UserError("the ranks that sample with this one are lost, or have ended");
  }
  return at(version);
}

void SampledWeights::give_up() {
  if (common_) common_->give_up();
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  changed_.notify_all();
}

}  // namespace sluice::nodes
