#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "comm/parcels/direct_parcels.h"
#include "comm/weights/common_landings.h"
#include "comm/weights/publication_plan.h"
#include "comm/weights/version_on_its_way.h"
#include "engine/contract/world/publication.h"

namespace sluice::comm {

/// Whether receivers of a publication may be lost, and those that were. A plain value.
struct ReceiverLosses {
  static constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

  bool may_be = false;
  std::map<int, int64_t> ranks;  // and from which version on each is there again

  bool is_lost(int rank, int64_t version) const {
    const auto found = ranks.find(rank);
    return found != ranks.end() && version < found->second;
  }
};

/// What DirectPublication does, which says how; of this the callbacks of parcels that may still come are owners too. Its bytes
/// are in publication_exchange.cpp, what ranks say of them in publication_words.cpp.
///
/// Threads: any; what comes is taken on the thread of the parcels, and events run there. Failure: as
/// engine/contract/world/publication.h says.
class PublicationExchange : public std::enable_shared_from_this<PublicationExchange> {
 public:
  using Events = engine::Publication::Events;
  using ParcelOf = engine::ParcelOf;

  PublicationExchange(DirectParcels& parcels, engine::PublicationLayout layout, Events events, ReceiverLosses losses);

  /// No event comes after that. Waits for one that runs.
  void close();

  std::vector<engine::Range> stretches(engine::Range range) const;

  /// Where nobody has taken the checksums yet, who receives too takes them here, since it needs them itself; for others they are
  /// taken on the way out.
  void offer(int64_t number, engine::Range range, const std::shared_ptr<const std::byte>& bytes,
             std::span<const uint32_t> checksums);

  std::shared_ptr<std::byte> new_source(size_t bytes);

  /// It may wait.
  std::shared_ptr<engine::Landing> new_landing() { return landings_.next(); }

  /// A receiver is lost: whoever was waited for has said all that it will.
  void lose(int rank);

  void take_back(int rank, int64_t first_version);

  void receive(int64_t number, const std::shared_ptr<engine::Landing>& into);

  void acknowledge(int64_t number);

 private:
  std::string text_of(int64_t version) const;
  engine::ParcelKey key_of(int64_t version, const PublishedPiece& piece) const;
  engine::ParcelKey word_key(int64_t version, int of, ParcelOf what) const { return {plan_.layout().model, version, of, what}; }

  // The memory of new_source() that these bytes belong to; null: none.
  std::shared_ptr<Block> source_of(const std::shared_ptr<const std::byte>& bytes);

  // Those of one of this rank's ranges.
  std::vector<size_t> pieces_of(engine::Range range) const;

  // What this rank hears from others of a version it grants when it has to do with it first.
  VersionOnItsWay& version_of(int64_t number);

  bool brings(const PublishedPiece& piece) const { return is_receiver_ && plan_.bringer(piece, rank_) == rank_; }

  void listen_to_sharers(int64_t number);
  void tell_sharers(int64_t number, ParcelOf what, uint32_t value);

  void listen(int rank, engine::ParcelKey key, std::function<void(const engine::Parcel& word)> heard);

  void grant(int64_t number, const std::shared_ptr<engine::Landing>& into);

  // A version lands once all have named the same place, this rank among them.
  void take_free(int64_t number, int sharer, uint32_t place);

  void land(int64_t number, VersionOnItsWay& version);

  void hand_out(VersionOnItsWay& version, int64_t number, const PublishedPiece& piece, ByteParcel parcel);

  // What this rank owns and receives, where both are there. Without the lock: what comes meanwhile is not to wait.
  void copy_own(int64_t number);

  void take(int64_t number, size_t index, const ByteParcel& parcel);

  void count_brought(int64_t number, size_t index);

  // This rank's part is there.
  void share(int64_t number);

  void take_share(int64_t number, int sharer);

  void land_whole(VersionOnItsWay& version);

  void take_acknowledgement(int64_t number, int receiver, uint32_t checksum);

  void confirm_if_all_have(int64_t number);

  // The others hear it first: whoever has opened a version owes nobody anything of it, and may leave.
  void confirm(int64_t number, VersionOnItsWay& version);

  void be_heard(int64_t number, int rank);

  void take_confirmation(int64_t number, Confirmation confirmation);

  void tell(std::function<void()> event);

  DirectParcels& parcels_;
  const int rank_;
  const PublicationPlan plan_;
  const bool is_owner_, is_receiver_;
  const Events events_;
  CommonLandings landings_;

  std::mutex running_;  // while an event runs; of is_closed_
  bool is_closed_ = false;

  std::mutex mutex_;  // of all below
  ReceiverLosses losses_;
  std::map<int64_t, VersionOnItsWay> versions_;
  int64_t next_landing_, next_open_;
  std::vector<std::weak_ptr<Block>> sources_;
  double fastest_ = 0;  // bytes a second that came to this rank, see ArrivalRate
};

}  // namespace sluice::comm
