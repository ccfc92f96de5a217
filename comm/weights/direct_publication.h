#pragma once

#include <cstdint>
#include <memory>

#include "comm/parcels/direct_parcels.h"
#include "comm/weights/publication_exchange.h"
#include "engine/contract/world/publication.h"

namespace sluice::comm {

/// A publication over parcels: each piece of PublicationPlan is one, and comes straight to its place in the landing. On one host
/// receivers copy by themselves out of memory of new_source() and of landings; out of other memory the owner copies. They have a
/// landing in common: the first of them makes it and lends it to the others. Each tells the others when it has no readers there
/// any more, and when its part of a version is there: two short messages to each. The owner takes the checksums, or whoever
/// writes the bytes does; they travel with the piece: whoever it comes to compares with what was there at the beginning, also
/// where it was handed on in between.
///
/// Of a version a receiver tells each owner that it has acknowledged it, with its checksum. An owner that has heard it of all
/// tells all ranks, with how long that took and who was last, and a version opens where all owners have said so: two short
/// messages after the last byte; at an owner itself when the others have heard it. Nothing is granted but for versions that
/// this rank has to do with, so a rank may say goodbye once the last of them is open.
///
/// Uses the parcels, which outlive it; no two publications of one model do. Threads and failure: as
/// engine/contract/world/publication.h says. UserError that names both ranks where two have acknowledged one version with
/// different checksums.
class DirectPublication final : public engine::Publication {
 public:
  /// `layout`: as on all other ranks. This rank need be neither owner nor receiver.
  DirectPublication(DirectParcels& parcels, engine::PublicationLayout layout, Events events, ReceiverLosses losses = {});

  /// No event comes after that. Waits for one that runs.
  ~DirectPublication() override;

  std::shared_ptr<std::byte> new_source(size_t bytes) override;
  std::vector<engine::Range> stretches(engine::Range range) const override;
  void offer(int64_t version, engine::Range range, std::shared_ptr<const std::byte> bytes,
             std::vector<uint32_t> checksums) override;
  std::shared_ptr<engine::Landing> new_landing() override;
  void receive(int64_t version, std::shared_ptr<engine::Landing> into) override;
  void acknowledge(int64_t version) override;

  /// A receiver that may be lost is: versions open without its word. It is there again, and gets that version and those that
  /// follow: so on all owners, none of which has offered anything of it. From any thread.
  void lose(int rank);
  void take_back(int rank, int64_t first_version);

 private:
  const std::shared_ptr<PublicationExchange> exchange_;  // also of callbacks that may still come
};

}  // namespace sluice::comm
