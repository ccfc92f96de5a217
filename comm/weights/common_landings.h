#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "comm/parcels/direct_parcels.h"
#include "comm/weights/block_landing.h"

namespace sluice::comm {

/// The landings of one receiver of a publication, which other receivers of its host have, too: the first of them makes each, and
/// lends it to the others.
///
/// Uses the parcels, which outlive it. Thread-safe.
class CommonLandings {
 public:
  /// `sharers`: of each landing, in the same order on all of them, and this rank among them. A version has so many bytes, in so
  /// many chunks. `key`: of model and first version, for what goes between them.
  CommonLandings(DirectParcels& parcels, std::vector<int> sharers, size_t bytes, size_t chunks, engine::ParcelKey key);

  const std::vector<int>& sharers() const { return sharers_; }

  /// The next one. Waits for: the first of the sharers to make it. Ends when: it does, or the parcels end (UserError).
  std::shared_ptr<BlockLanding> next();

 private:
  std::shared_ptr<Block> block(int number);
  std::shared_ptr<Block> borrowed(const engine::ParcelKey& key);

  DirectParcels& parcels_;
  const std::vector<int> sharers_;
  const size_t bytes_, chunks_;
  const engine::ParcelKey key_;
  std::atomic<int> count_ = 0;  // so far
};

}  // namespace sluice::comm
