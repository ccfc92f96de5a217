#include "comm/weights/publication_exchange.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "comm/weights/block_landing.h"

namespace sluice::comm {
namespace {

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

}  // namespace

PublicationExchange::PublicationExchange(DirectParcels& parcels, engine::PublicationLayout layout, Events events,
                                         ReceiverLosses losses)
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

void PublicationExchange::close() {
  const std::lock_guard lock(running_);
  is_closed_ = true;
}

std::vector<engine::Range> PublicationExchange::stretches(engine::Range range) const {
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

void PublicationExchange::offer(int64_t number, engine::Range range, const std::shared_ptr<const std::byte>& bytes,
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

std::shared_ptr<std::byte> PublicationExchange::new_source(size_t bytes) {
  const std::shared_ptr<Block> block = parcels_.new_landing(bytes);
  const std::lock_guard lock(mutex_);
  std::erase_if(sources_, [](const std::weak_ptr<Block>& source) { return source.expired(); });
  sources_.push_back(block);
  return {block, block->memory.data()};
}

void PublicationExchange::receive(int64_t number, const std::shared_ptr<engine::Landing>& into) {
  grant(number, into);
  copy_own(number);
}

std::string PublicationExchange::text_of(int64_t version) const {
  return "version " + std::to_string(version) + " of '" + plan_.layout().model + "'";
}

engine::ParcelKey PublicationExchange::key_of(int64_t version, const PublishedPiece& piece) const {
  return {plan_.layout().model, version, piece.bucket, ParcelOf::kWeights, piece.number};
}

std::shared_ptr<Block> PublicationExchange::source_of(const std::shared_ptr<const std::byte>& bytes) {
  const std::lock_guard lock(mutex_);
  for (const std::weak_ptr<Block>& source : sources_)
    if (!source.owner_before(bytes) && !bytes.owner_before(source)) return source.lock();
  return nullptr;
}

std::vector<size_t> PublicationExchange::pieces_of(engine::Range range) const {
  const auto& pieces = plan_.pieces();
  const auto first = std::ranges::lower_bound(pieces, range.begin, {}, [](const PublishedPiece& of) { return of.range.begin; });
  std::vector<size_t> indices;
  for (auto piece = first; piece != pieces.end() && piece->range.begin < range.end; ++piece)
    if (piece->owner == rank_ && piece->owned.begin == range.begin && piece->owned.end == range.end)
      indices.push_back(static_cast<size_t>(piece - pieces.begin()));
  SLUICE_CHECK(!indices.empty(), "'" + plan_.layout().model + "': bytes that are no range of this rank");
  return indices;
}

void PublicationExchange::grant(int64_t number, const std::shared_ptr<engine::Landing>& into) {
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

void PublicationExchange::take_free(int64_t number, int sharer, uint32_t place) {
  VersionOnItsWay& version = versions_.at(number);
  version.places.insert(place);
  SLUICE_CHECK(version.places.size() == 1, text_of(number) + " is to land at several places of one host");
  version.not_free.erase(sharer);
  if (!version.not_free.empty()) return;
  version.landing = version.named;
  land(number, version);
}

void PublicationExchange::land(int64_t number, VersionOnItsWay& version) {
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

void PublicationExchange::hand_out(VersionOnItsWay& version, int64_t number, const PublishedPiece& piece, ByteParcel parcel) {
  parcel.taken = std::make_shared<ChunkChecksums>();
  for (const int target : plan_.targets(piece, rank_)) {
    if (losses_.is_lost(target, number)) continue;
    version.told.bytes_sent += static_cast<int64_t>(parcel.size);
    parcels_.send_bytes(target, key_of(number, piece), parcel, {});
  }
}

void PublicationExchange::copy_own(int64_t number) {
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

void PublicationExchange::take(int64_t number, size_t index, const ByteParcel& parcel) {
  const std::lock_guard lock(mutex_);
  VersionOnItsWay& version = versions_.at(number);
  version.checksums[index] = parcel.checksums;
  version.told.bytes_received += static_cast<int64_t>(parcel.size);
  version.arrivals.add(version.seconds(), parcel.size);
  hand_out(version, number, plan_.pieces()[index], parcel);
  count_brought(number, index);
}

void PublicationExchange::count_brought(int64_t number, size_t index) {
  VersionOnItsWay& version = versions_.at(number);
  version.landing->note(plan_.pieces()[index].first_chunk, version.checksums[index]);
  if (--version.missing == 0) share(number);
}

void PublicationExchange::share(int64_t number) {
  tell_sharers(number, ParcelOf::kShare, 0);
  take_share(number, rank_);
}

void PublicationExchange::take_share(int64_t number, int sharer) {
  VersionOnItsWay& version = versions_.at(number);
  version.not_shared.erase(sharer);
  if (version.not_shared.empty()) land_whole(version);
}

void PublicationExchange::land_whole(VersionOnItsWay& version) {
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

}  // namespace sluice::comm
