#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/world/publication.h"
#include "nodes/models/weights/weight_publisher.h"
#include "nodes/models/weights/wire_layout.h"

namespace sluice::nodes {

/// Publishes to ranks that sample: copies this rank's part of the live weights, in the precision that they are sampled with, with
/// checksums, and has it brought there. The live weights may change as soon as publish() returns; when a version can be sampled
/// from, those ranks know.
///
/// Every rank that trains has all of the live weights, and so owns an equal part of each version. Failure: of the ranks that
/// receive, see engine/contract/world/publication.h.
class RemotePublisher final : public WeightPublisher {
 public:
  /// `publications` outlives this. `trained`: what of the live weights is trained, the same tensors always.
  RemotePublisher(std::string model, WireLayout layout, std::vector<std::pair<std::string, at::Tensor>> trained,
                  PublicationRanks ranks, engine::Publications& publications);

  void publish(int64_t version) override;
  void restart() override;

 private:
  void begin(int64_t first_version);
  std::vector<uint32_t> write(engine::Range range, std::byte* to) const;
  uint32_t write_stretch(engine::Range range, std::byte* to) const;

  const std::string model_;
  const WireLayout layout_;
  const std::vector<std::pair<std::string, at::Tensor>> trained_;
  const PublicationRanks ranks_;
  engine::Publications& publications_;
  std::vector<engine::Range> own_;                    // of a version
  std::shared_ptr<std::byte> source_;                 // of the version that was published last
  int64_t published_ = -1;                            // that version
  std::atomic<int64_t> opened_{-1};                   // the last one that has opened
  std::unique_ptr<engine::Publication> publication_;  // null: no version yet; last: it calls back
};

}  // namespace sluice::nodes
