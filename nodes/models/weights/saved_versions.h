#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/contract/world/model_versions.h"
#include "models/memory/host_copy.h"
#include "nodes/models/weights/weight_publisher.h"

namespace sluice::nodes {

/// The trained weights of the last versions that were published, to be saved with the newest: what iterations under way were
/// sampled with. Stands before another publisher: it copies what is published, and hands it on. Thread-safe.
///
/// A version that is lent stays as it is while later ones are kept, so there may be twice as many copies as are kept, which are
/// then used again and again.
class SavedVersions final : public WeightPublisher {
 public:
  /// trained: the flat buffer of the live weights that are trained, [floats]. `next` must outlive this.
  SavedVersions(engine::ModelVersions versions, at::Tensor trained, WeightPublisher& next)
      : versions_(versions), trained_(std::move(trained)), next_(next) {}

  /// Keeps a copy of `version`, which is later than all before it.
  void keep(int64_t version);

  void publish(int64_t version) override;
  void restart() override;

  /// The copies of versions [begin, end), in order, until give_back(). Throws InternalError when one is not kept, or some are
  /// lent.
  std::vector<at::Tensor> lend(int64_t begin, int64_t end);
  void give_back();

  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  struct Copy {
    explicit Copy(int64_t floats) : memory(floats) {}

    int64_t version = -1;  // -1: none
    bool lent = false;
    models::HostCopy memory;
  };

  Copy& free_copy(int64_t version);

  const engine::ModelVersions versions_;
  const at::Tensor trained_;
  WeightPublisher& next_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Copy>> copies_;
  std::atomic<int64_t> bytes_ = 0;
};

}  // namespace sluice::nodes
