#include "comm/weights/direct_publication.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "comm/weights/block_landing.h"
#include "comm/weights/common_landings.h"
#include "comm/weights/version_on_its_way.h"

namespace sluice::comm {
namespace {

using engine::ParcelOf;

constexpr int64_t kMostWord = 64;  // bytes of an acknowledgement

std::vector<uint32_t> checksums_of(const std::byte* bytes, size_t size) {
  std::vector<uint32_t> checksums;
  for (uint32_t chunk = 0; chunk < ChunkRange::count(size); ++chunk) {
    const ChunkRange range = ChunkRange::of(chunk, size);
    checksums.push_back(crc32c({reinterpret_cast<const char*>(bytes) + range.begin, range.size()}));
  }
  return checksums;
}

// Ranks that the layout has on one host have memory in common only if their parcels have.
engine::PublicationLayout on_hosts(engine::PublicationLayout layout, const DirectParcels& parcels) {
  const std::vector<int>& found = parcels.hosts();
  if (layout.hosts.empty()) layout.hosts = found;
  SLUICE_CHECK(layout.hosts.size() == found.size(), "a layout of other ranks");
  std::map<std::pair<int, int>, int> numbers;
  for (size_t rank = 0; rank < found.size(); ++rank)
    layout.hosts[rank] = numbers.try_emplace({layout.hosts[rank], found[rank]}, static_cast<int>(rank)).first->second;
  return layout;
}

std::string word_of(uint32_t value) {
  ByteWriter word;
  word.number(value);
  return word.take();
}

uint32_t value_of(const engine::Parcel& word) { return ByteReader(word.header).number<uint32_t>(); }

}  // namespace

class DirectPublication::State : public std::enable_shared_from_this<State> {
 public:
  State(DirectParcels& parcels, engine::PublicationLayout layout, Events events, ReceiverLosses losses)
      : parcels_(parcels),
        rank_(parcels.world().rank),
        plan_(on_hosts(std::move(layout), parcels), losses.may_be),
        is_owner_(plan_.is_owner(rank_)),
        is_receiver_(plan_.is_receiver(rank_)),
        events_(std::move(events)),
        landings_(parcels, plan_.sharers(rank_), plan_.layout().bytes(), plan_.chunks(),
                  {.edge = plan_.layout().model, .iteration = plan_.layout().first_version}),
        losses_(std::move(losses)),
        next_landing_(plan_.layout().first_version),
        next_open_(plan_.layout().first_version) {}

  void close() {
    const std::lock_guard lock(running_);
    is_closed_ = true;
  }

  std::vector<engine::Range> stretches(engine::Range range) const {
    std::vector<engine::Range> all;
    for (const size_t index : pieces_of(range)) {
      const engine::Range piece = plan_.pieces()[index].range;
      for (uint32_t chunk = 0; chunk < ChunkRange::count(piece.size()); ++chunk) {
        const ChunkRange of = ChunkRange::of(chunk, piece.size());
        all.push_back({piece.begin + of.begin, piece.begin + of.end});
      }
    }
    return all;
  }

  // Where nobody has taken the checksums yet, who receives too takes them here, since it needs them itself; for others they are
  // taken on the way out.
  void offer(int64_t number, engine::Range range, const std::shared_ptr<const std::byte>& bytes,
             std::span<const uint32_t> checksums) {
    const std::shared_ptr<Block> source = source_of(bytes);
    const bool are_taken = !checksums.empty();
    std::map<size_t, ByteParcel> parcels;  // by piece
    for (const size_t index : pieces_of(range)) {
      const engine::Range part = plan_.pieces()[index].range;
      const std::shared_ptr<const std::byte> place(bytes, bytes.get() + (part.begin - range.begin));
      std::vector<uint32_t> own;
      if (are_taken) {
        const size_t count = ChunkRange::count(part.size());
        SLUICE_CHECK(count <= checksums.size(), text_of(number) + ": too few checksums");
        own.assign(checksums.begin(), checksums.begin() + static_cast<int64_t>(count));
        checksums = checksums.subspan(count);
      } else if (is_receiver_) {
        own = checksums_of(place.get(), part.size());
      }
      parcels[index] = {place, part.size(), std::move(own), source};
    }
    SLUICE_CHECK(checksums.empty(), text_of(number) + ": too many checksums");
    {
      const std::lock_guard lock(mutex_);
      VersionOnItsWay& version = version_of(number);
      if (version.offered.empty()) version.first_offer = version.seconds();
      const bool is_new = version.offered.insert(range.begin).second;
      SLUICE_CHECK(is_new, text_of(number) + ": a range is offered twice");
      for (const auto& [index, parcel] : parcels) {
        version.checksums[index] = parcel.checksums;
        hand_out(version, number, plan_.pieces()[index], parcel);
      }
      if (is_receiver_) version.to_copy.merge(parcels);
    }
    copy_own(number);
  }

  std::shared_ptr<std::byte> new_source(size_t bytes) {
    const std::shared_ptr<Block> block = parcels_.new_landing(bytes);
    const std::lock_guard lock(mutex_);
    std::erase_if(sources_, [](const std::weak_ptr<Block>& source) { return source.expired(); });
    sources_.push_back(block);
    return {block, block->memory.data()};
  }

  // Without the lock: it may wait.
  std::shared_ptr<engine::Landing> new_landing() { return landings_.next(); }

  // Whoever was waited for has said all that it will.
  void lose(int rank) {
    const std::lock_guard lock(mutex_);
    if (std::exchange(losses_.ranks[rank], ReceiverLosses::kNever) == ReceiverLosses::kNever) return;
    std::vector<int64_t> numbers;
    for (const auto& [number, version] : versions_) numbers.push_back(number);
    for (const int64_t number : numbers) {
      be_heard(number, rank);
      if (is_owner_ && versions_.contains(number)) confirm_if_all_have(number);
    }
  }

  void take_back(int rank, int64_t first_version) {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(versions_.empty() || versions_.rbegin()->first < first_version,
                 text_of(first_version) + " has begun without rank " + std::to_string(rank));
    losses_.ranks[rank] = first_version;
  }

  void receive(int64_t number, const std::shared_ptr<engine::Landing>& into) {
    grant(number, into);
    copy_own(number);
  }

  void acknowledge(int64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = versions_.find(number);
    SLUICE_CHECK(is_receiver_ && found != versions_.end() && found->second.has_landed,
                 text_of(number) + " is acknowledged before it has landed");
    SLUICE_CHECK(!std::exchange(found->second.acknowledged, true), text_of(number) + " is acknowledged twice");
    const uint32_t checksum = found->second.checksum();
    for (const int owner : plan_.owners())
      if (owner != rank_) parcels_.send(owner, word_key(number, rank_, ParcelOf::kAcknowledged), {word_of(checksum), {}}, {});
    if (is_owner_) take_acknowledgement(number, rank_, checksum);
  }

 private:
  std::string text_of(int64_t version) const {
    return "version " + std::to_string(version) + " of '" + plan_.layout().model + "'";
  }
  engine::ParcelKey key_of(int64_t version, const PublishedPiece& piece) const {
    return {plan_.layout().model, version, piece.bucket, ParcelOf::kWeights, piece.number};
  }
  engine::ParcelKey word_key(int64_t version, int of, ParcelOf what) const { return {plan_.layout().model, version, of, what}; }

  // The memory of new_source() that these bytes belong to; null: none.
  std::shared_ptr<Block> source_of(const std::shared_ptr<const std::byte>& bytes) {
    const std::lock_guard lock(mutex_);
    for (const std::weak_ptr<Block>& source : sources_)
      if (!source.owner_before(bytes) && !bytes.owner_before(source)) return source.lock();
    return nullptr;
  }

  // Those of one of this rank's ranges.
  std::vector<size_t> pieces_of(engine::Range range) const {
    const auto& pieces = plan_.pieces();
    const auto first = std::ranges::lower_bound(pieces, range.begin, {}, [](const PublishedPiece& of) { return of.range.begin; });
    std::vector<size_t> indices;
    for (auto piece = first; piece != pieces.end() && piece->range.begin < range.end; ++piece)
      if (piece->owner == rank_ && piece->owned.begin == range.begin && piece->owned.end == range.end)
        indices.push_back(static_cast<size_t>(piece - pieces.begin()));
    SLUICE_CHECK(!indices.empty(), "'" + plan_.layout().model + "': bytes that are no range of this rank");
    return indices;
  }

  // What this rank hears from others of a version it grants when it has to do with it first.
  VersionOnItsWay& version_of(int64_t number) {
    SLUICE_CHECK(number >= next_open_, text_of(number) + " is open already");
    const auto [found, is_new] = versions_.try_emplace(number);
    VersionOnItsWay& version = found->second;
    if (!is_new) return version;
    version.told.version = number;
    version.told.bytes = static_cast<int64_t>(plan_.layout().bytes());
    version.checksums.resize(plan_.pieces().size());
    version.missing =
        static_cast<size_t>(std::ranges::count_if(plan_.pieces(), [&](const auto& piece) { return brings(piece); }));
    version.not_free = version.not_shared = {landings_.sharers().begin(), landings_.sharers().end()};
    listen_to_sharers(number);
    for (const int owner : plan_.owners())
      listen(owner, word_key(number, owner, ParcelOf::kConfirmed),
             [=, this](const engine::Parcel& word) { take_confirmation(number, Confirmation::of(word)); });
    for (const int receiver : is_owner_ ? plan_.layout().receivers : std::vector<int>())
      if (!losses_.is_lost(receiver, number))
        listen(receiver, word_key(number, receiver, ParcelOf::kAcknowledged),
               [=, this](const engine::Parcel& word) { take_acknowledgement(number, receiver, value_of(word)); });
    return version;
  }

  bool brings(const PublishedPiece& piece) const { return is_receiver_ && plan_.bringer(piece, rank_) == rank_; }

  void listen_to_sharers(int64_t number) {
    for (const int sharer : landings_.sharers()) {
      listen(sharer, word_key(number, sharer, ParcelOf::kFree),
             [=, this](const engine::Parcel& word) { take_free(number, sharer, value_of(word)); });
      listen(sharer, word_key(number, sharer, ParcelOf::kShare),
             [=, this](const engine::Parcel&) { take_share(number, sharer); });
    }
  }
  void tell_sharers(int64_t number, ParcelOf what, uint32_t value) {
    for (const int sharer : landings_.sharers())
      if (sharer != rank_) parcels_.send(sharer, word_key(number, rank_, what), {word_of(value), {}}, {});
  }

  void listen(int rank, engine::ParcelKey key, std::function<void(const engine::Parcel& word)> heard) {
    if (rank == rank_) return;
    parcels_.receive(rank, std::move(key), kMostWord,
                     [self = shared_from_this(), heard = std::move(heard)](const engine::Parcel& word) {
                       const std::lock_guard lock(self->mutex_);
                       heard(word);
                     });
  }

  void grant(int64_t number, const std::shared_ptr<engine::Landing>& into) {
    const std::lock_guard lock(mutex_);
    SLUICE_CHECK(is_receiver_ && number == next_landing_, text_of(number) + " is received out of order, or by no receiver");
    const auto landing = std::dynamic_pointer_cast<BlockLanding>(into);
    SLUICE_CHECK(landing && landing->bytes().size() == plan_.layout().bytes(), "a landing of somebody else");
    ++next_landing_;
    const auto place = static_cast<uint32_t>(landing->number());
    version_of(number).named = landing;
    tell_sharers(number, ParcelOf::kFree, place);
    take_free(number, rank_, place);
  }

  // A version lands once all have named the same place, this rank among them.
  void take_free(int64_t number, int sharer, uint32_t place) {
    VersionOnItsWay& version = versions_.at(number);
    version.places.insert(place);
    SLUICE_CHECK(version.places.size() == 1, text_of(number) + " is to land at several places of one host");
    version.not_free.erase(sharer);
    if (!version.not_free.empty()) return;
    version.landing = version.named;
    land(number, version);
  }

  void land(int64_t number, VersionOnItsWay& version) {
    for (size_t index = 0; index < plan_.pieces().size(); ++index) {
      const PublishedPiece& piece = plan_.pieces()[index];
      if (!brings(piece)) continue;
      const int source = plan_.source(piece, rank_);
      if (source == rank_) continue;
      parcels_.receive_bytes(source, key_of(number, piece), {version.landing->block(), piece.range.begin, piece.range.size()},
                             [=, self = shared_from_this()](const ByteParcel& parcel) { self->take(number, index, parcel); });
    }
    if (is_owner_) parcels_.post([self = shared_from_this(), number] { self->copy_own(number); });
    if (version.missing == 0) share(number);
  }

  void hand_out(VersionOnItsWay& version, int64_t number, const PublishedPiece& piece, ByteParcel parcel) {
    parcel.taken = std::make_shared<ChunkChecksums>();
    for (const int target : plan_.targets(piece, rank_)) {
      if (losses_.is_lost(target, number)) continue;
      version.told.bytes_sent += static_cast<int64_t>(parcel.size);
      parcels_.send_bytes(target, key_of(number, piece), parcel, {});
    }
  }

  // What this rank owns and receives, where both are there. Without the lock: what comes meanwhile is not to wait.
  void copy_own(int64_t number) {
    std::map<size_t, ByteParcel> parcels;
    std::byte* place = nullptr;
    {
      const std::lock_guard lock(mutex_);
      const auto version = versions_.find(number);
      if (version == versions_.end() || !version->second.landing) return;
      place = version->second.landing->bytes().data();
      parcels.swap(version->second.to_copy);
    }
    for (const auto& [index, parcel] : parcels)
      std::memcpy(place + plan_.pieces()[index].range.begin, parcel.bytes.get(), parcel.size);
    const std::lock_guard lock(mutex_);
    for (const auto& [index, parcel] : parcels) count_brought(number, index);
  }

  void take(int64_t number, size_t index, const ByteParcel& parcel) {
    const std::lock_guard lock(mutex_);
    VersionOnItsWay& version = versions_.at(number);
    version.checksums[index] = parcel.checksums;
    version.told.bytes_received += static_cast<int64_t>(parcel.size);
    version.arrivals.add(version.seconds(), parcel.size);
    hand_out(version, number, plan_.pieces()[index], parcel);
    count_brought(number, index);
  }

  void count_brought(int64_t number, size_t index) {
    VersionOnItsWay& version = versions_.at(number);
    version.landing->note(plan_.pieces()[index].first_chunk, version.checksums[index]);
    if (--version.missing == 0) share(number);
  }

  // This rank's part is there.
  void share(int64_t number) {
    tell_sharers(number, ParcelOf::kShare, 0);
    take_share(number, rank_);
  }

  void take_share(int64_t number, int sharer) {
    VersionOnItsWay& version = versions_.at(number);
    version.not_shared.erase(sharer);
    if (version.not_shared.empty()) land_whole(version);
  }

  void land_whole(VersionOnItsWay& version) {
    for (size_t index = 0; index < plan_.pieces().size(); ++index) {
      const PublishedPiece& piece = plan_.pieces()[index];
      if (!brings(piece))
        version.checksums[index] = version.landing->noted(piece.first_chunk, ChunkRange::count(piece.range.size()));
    }
    version.has_landed = true;
    version.told.landed_seconds = version.seconds();
    fastest_ = std::max(fastest_, version.arrivals.fastest());
    version.told.link_bytes_per_second = fastest_;
    tell([this, number = version.told.version, checksum = version.checksum()] { events_.landed(number, checksum); });
  }

  void take_acknowledgement(int64_t number, int receiver, uint32_t checksum) {
    VersionOnItsWay& version = versions_.at(number);
    auto& acknowledgements = version.acknowledgements;
    for (const auto& [other, its] : acknowledgements) {
      if (its == checksum) continue;
      throw UserError("rank " + std::to_string(receiver) + " has another " + text_of(number) + " than rank " +
                          std::to_string(other) + ": their checksums differ",
                      "look for faults of the memory of both machines");
    }
    if (acknowledgements.empty()) version.first_acknowledgement = version.seconds();
    acknowledgements.emplace(receiver, checksum);
    version.slowest = receiver;
    confirm_if_all_have(number);
  }

  void confirm_if_all_have(int64_t number) {
    VersionOnItsWay& version = versions_.at(number);
    const auto has = [&](int receiver) {
      return losses_.is_lost(receiver, number) || version.acknowledgements.contains(receiver);
    };
    if (version.confirmation || !std::ranges::all_of(plan_.layout().receivers, has)) return;
    const double now = version.seconds();
    version.confirmation = Confirmation{.slowest = static_cast<uint32_t>(version.slowest),
                                        .seconds = now - version.first_offer,
                                        .slowest_seconds = now - version.first_acknowledgement};
    confirm(number, version);
  }

  // The others hear it first: whoever has opened a version owes nobody anything of it, and may leave.
  void confirm(int64_t number, VersionOnItsWay& version) {
    for (const int rank : plan_.ranks())
      if (rank != rank_ && !losses_.is_lost(rank, number)) version.unheard.insert(rank);
    if (version.unheard.empty()) return take_confirmation(number, *version.confirmation);
    for (const int rank : version.unheard) {
      parcels_.send(rank, word_key(number, rank_, ParcelOf::kConfirmed), {version.confirmation->word(), {}},
                    [=, this, self = shared_from_this()] {
                      const std::lock_guard lock(mutex_);
                      be_heard(number, rank);
                    });
    }
  }

  void be_heard(int64_t number, int rank) {
    const auto version = versions_.find(number);
    if (version == versions_.end() || version->second.unheard.erase(rank) == 0 || !version->second.unheard.empty()) return;
    take_confirmation(number, *version->second.confirmation);
  }

  void take_confirmation(int64_t number, Confirmation confirmation) {
    VersionOnItsWay& version = versions_.at(number);
    if (version.confirmations++ == 0 || confirmation.seconds > version.told.published_seconds) {
      version.told.published_seconds = confirmation.seconds;
      version.told.slowest_receiver = static_cast<int>(confirmation.slowest);
      version.told.slowest_seconds = confirmation.slowest_seconds;
    }
    while (!versions_.empty() && versions_.begin()->first == next_open_ &&
           versions_.begin()->second.confirmations == plan_.owners().size()) {
      engine::PublishedVersion told = versions_.begin()->second.told;
      told.opened_seconds = versions_.begin()->second.seconds();
      versions_.erase(versions_.begin());
      ++next_open_;
      if (events_.opened) tell([this, told] { events_.opened(told); });
    }
  }

  void tell(std::function<void()> event) {
    parcels_.post([self = shared_from_this(), event = std::move(event)] {
      const std::lock_guard lock(self->running_);
      if (!self->is_closed_) event();
    });
  }

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

DirectPublication::DirectPublication(DirectParcels& parcels, engine::PublicationLayout layout, Events events,
                                     ReceiverLosses losses)
    : state_(std::make_shared<State>(parcels, std::move(layout), std::move(events), std::move(losses))) {}

DirectPublication::~DirectPublication() { state_->close(); }

std::shared_ptr<std::byte> DirectPublication::new_source(size_t bytes) { return state_->new_source(bytes); }

std::vector<engine::Range> DirectPublication::stretches(engine::Range range) const { return state_->stretches(range); }

void DirectPublication::offer(int64_t version, engine::Range range, std::shared_ptr<const std::byte> bytes,
                              std::vector<uint32_t> checksums) {
  state_->offer(version, range, bytes, checksums);
}

std::shared_ptr<engine::Landing> DirectPublication::new_landing() { return state_->new_landing(); }

void DirectPublication::receive(int64_t version, std::shared_ptr<engine::Landing> into) { state_->receive(version, into); }

void DirectPublication::acknowledge(int64_t version) { state_->acknowledge(version); }

void DirectPublication::lose(int rank) { state_->lose(rank); }

void DirectPublication::take_back(int rank, int64_t first_version) { state_->take_back(rank, first_version); }

}  // namespace sluice::comm
