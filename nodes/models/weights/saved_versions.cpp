#include "nodes/models/weights/saved_versions.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::nodes {

void SavedVersions::keep(int64_t version) {
  if (versions_.kept_to_save() == 0) return;
  const std::lock_guard lock(mutex_);
  Copy& copy = free_copy(version);
  const int64_t before = copy.memory.bytes();
  copy.memory.copy({trained_});
  copy.version = version;
  bytes_ += copy.memory.bytes() - before;
}

// One whose version no checkpoint wants any more and that nobody reads.
SavedVersions::Copy& SavedVersions::free_copy(int64_t version) {
  const int64_t oldest = versions_.saved_with(version).oldest;
  const auto found = std::ranges::find_if(copies_, [&](const auto& copy) { return !copy->lent && copy->version < oldest; });
  if (found != copies_.end()) return **found;
  copies_.push_back(std::make_unique<Copy>(trained_.numel()));
  return *copies_.back();
}

void SavedVersions::publish(int64_t version) {
  keep(version);
  next_.publish(version);
}

void SavedVersions::restart() {
  {
    const std::lock_guard lock(mutex_);
    for (const auto& copy : copies_) copy->version = -1;
  }
  next_.restart();
}

std::vector<at::Tensor> SavedVersions::lend(int64_t begin, int64_t end) {
  const std::lock_guard lock(mutex_);
  std::vector<at::Tensor> lent;
  for (int64_t version = begin; version < end; ++version) {
    const auto found = std::ranges::find_if(copies_, [&](const auto& copy) { return copy->version == version; });
    SLUICE_CHECK(found != copies_.end(), "version " + std::to_string(version) + " is not kept to be saved");
    SLUICE_CHECK(!(*found)->lent, "version " + std::to_string(version) + " is being saved");
    (*found)->lent = true;
    lent.push_back((*found)->memory.tensor());
  }
  return lent;
}

void SavedVersions::give_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& copy : copies_) copy->lent = false;
}

}  // namespace sluice::nodes
