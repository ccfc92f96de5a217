#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "comm/parcels/direct_parcels.h"
#include "comm/weights/direct_publication.h"
#include "engine/contract/world/publication.h"

namespace sluice::comm {

/// What weights go by between the ranks of a run, over its parcels, which are DirectParcels and outlive this. Thread-safe.
class PublicationsOver final : public engine::Publications {
 public:
  /// `may_be_lost`: receivers may, and the others go on.
  PublicationsOver(engine::Parcels& parcels, bool may_be_lost);

  std::unique_ptr<engine::Publication> publication(engine::PublicationLayout layout, engine::Publication::Events events) override;

  void lose(int rank) override;
  void take_back(int rank, int64_t first_version) override;

 private:
  class Listed;

  DirectParcels& parcels_;
  std::mutex mutex_;  // guards what follows; taken before the locks of publications
  ReceiverLosses losses_;
  std::set<DirectPublication*> publications_;
};

}  // namespace sluice::comm
