#include "nodes/models/kept_versions.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::nodes {

void KeptVersions::keep(int64_t version, const at::Tensor& buffer) {
  if (count_ == 0) return;
  const std::lock_guard lock(mutex_);
  Copy& copy = free_copy(version);
  const int64_t before = copy.memory.bytes();
  copy.memory.copy(buffer);
  copy.version = version;
  bytes_ += copy.memory.bytes() - before;
}

// One whose version is not kept any more and that nobody reads.
KeptVersions::Copy& KeptVersions::free_copy(int64_t version) {
  const auto is_free = [&](const auto& copy) { return !copy->lent && copy->version <= version - count_; };
  const auto found = std::ranges::find_if(copies_, is_free);
  if (found != copies_.end()) return **found;
  copies_.push_back(std::make_unique<Copy>(floats_));
  return *copies_.back();
}

std::vector<at::Tensor> KeptVersions::lend(int64_t begin, int64_t end) {
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

void KeptVersions::give_back() {
  const std::lock_guard lock(mutex_);
  for (const auto& copy : copies_) copy->lent = false;
}

void KeptVersions::clear() {
  const std::lock_guard lock(mutex_);
  for (const auto& copy : copies_) copy->version = -1;
}

}  // namespace sluice::nodes
