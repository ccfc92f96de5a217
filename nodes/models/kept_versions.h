#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "models/memory/host_copy.h"

namespace sluice::nodes {

/// The trained weights of the last versions that were published, to be saved with the newest: what iterations under way were
/// sampled with. Thread-safe.
///
/// A version that is lent stays as it is while later ones are kept, so there may be twice `count` copies, which are then used
/// again and again.
class KeptVersions {
 public:
  /// Of buffers of `floats` numbers; keeps the last `count` versions.
  KeptVersions(int64_t count, int64_t floats) : count_(count), floats_(floats) {}

  /// Copies `buffer` as `version`, which is later than all before it.
  void keep(int64_t version, const at::Tensor& buffer);

  /// The copies of versions [begin, end), in order, until give_back(). Throws InternalError when one is not kept, or some are
  /// lent.
  std::vector<at::Tensor> lend(int64_t begin, int64_t end);
  void give_back();

  /// Forgets all versions.
  void clear();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Copy {
    explicit Copy(int64_t floats) : memory(floats) {}

    int64_t version = -1;  // -1: none
    bool lent = false;
    models::HostCopy memory;
  };

  Copy& free_copy(int64_t version);

  const int64_t count_, floats_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace sluice::nodes
