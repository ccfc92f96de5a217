#include "comm/weights/publication_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "comm/parcels/chunk.h"

namespace sluice::comm {
namespace {

// A host hands a piece on when all of it is there. So the last one takes its time from host to host, on top of the time that all
// the bytes take: with so many pieces for each receiver that is less than this part of it.
constexpr size_t kLeastPieces = 64;
constexpr size_t kSmallestPiece = size_t{128} << 10, kLargestPiece = size_t{4} << 20;
constexpr size_t kAlignedPiece = 64;  // a cache line

bool has(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

size_t divided_up(size_t count, size_t by) { return (count + by - 1) / by; }

// The least multiple of `unit` that is at least so much.
size_t rounded_up(size_t count, size_t unit) { return divided_up(count, unit) * unit; }

size_t most_of_a_piece(size_t bytes, size_t receivers) {
  return std::clamp(bytes / (kLeastPieces * receivers), kSmallestPiece, kLargestPiece);
}

}  // namespace

PublicationPlan::PublicationPlan(engine::PublicationLayout layout, bool direct) : layout_(std::move(layout)), direct_(direct) {
  const std::vector<int>& receivers = layout_.receivers;
  const std::set<int> different(receivers.begin(), receivers.end());
  SLUICE_CHECK(!receivers.empty() && different.size() == receivers.size(), "weights for nobody, or for one rank twice");
  SLUICE_CHECK(layout_.hosts.empty() || static_cast<size_t>(*different.rbegin()) < layout_.hosts.size(), "a receiver on no host");
  std::map<int, Receivers> hosts;
  for (const int receiver : receivers) hosts[host_of(receiver)].push_back(receiver);
  for (auto& [number, host] : hosts) hosts_.push_back(std::move(host));
  std::set<int> owners, ranks = different;
  size_t end = 0;
  for (int64_t bucket = 0; bucket < std::ssize(layout_.buckets); ++bucket) {
    const auto& ranges = layout_.buckets[static_cast<size_t>(bucket)];
    SLUICE_CHECK(!ranges.empty(), "a bucket of nobody");
    int64_t number = 0;
    for (const engine::OwnedBytes& owned : ranges) {
      SLUICE_CHECK(owned.range.begin == end && owned.range.end > end, "ranges of weights that do not follow one another");
      end = owned.range.end;
      SLUICE_CHECK(layout_.hosts.empty() || static_cast<size_t>(owned.owner) < layout_.hosts.size(), "an owner on no host");
      cut(bucket, owned, number);
      owners.insert(owned.owner);
      ranks.insert(owned.owner);
    }
  }
  SLUICE_CHECK(end > 0, "no weights to publish");
  owners_.assign(owners.begin(), owners.end());
  ranks_.assign(ranks.begin(), ranks.end());
}

void PublicationPlan::cut(int64_t bucket, const engine::OwnedBytes& owned, int64_t& number) {
  const size_t most = most_of_a_piece(layout_.bytes(), layout_.receivers.size());
  const auto is_elsewhere = [&](int receiver) { return !direct_ && host_of(receiver) != host_of(owned.owner); };
  const auto elsewhere = static_cast<size_t>(std::ranges::count_if(layout_.receivers, is_elsewhere));
  const size_t count = rounded_up(divided_up(owned.range.size(), most), std::max<size_t>(elsewhere, 1));
  const size_t size = rounded_up(divided_up(owned.range.size(), count), kAlignedPiece);
  // Small ranges do not reach all receivers: those of the next bucket, or of the next owner, begin at another one.
  const size_t turn = static_cast<size_t>(bucket) + static_cast<size_t>(owned.owner);
  for (size_t begin = owned.range.begin, i = 0; begin < owned.range.end; begin += size, ++i) {
    pieces_.push_back({.bucket = bucket,
                       .number = number++,
                       .owner = owned.owner,
                       .turn = turn + i,
                       .range = {begin, std::min(begin + size, owned.range.end)},
                       .owned = owned.range,
                       .first_chunk = chunks_});
    chunks_ += ChunkRange::count(pieces_.back().range.size());
  }
}

bool PublicationPlan::is_owner(int rank) const { return has(owners_, rank); }

bool PublicationPlan::is_receiver(int rank) const { return has(layout_.receivers, rank); }

// Where ranks share no memory each has a host of its own.
int PublicationPlan::host_of(int rank) const { return layout_.hosts.empty() ? rank : layout_.hosts[static_cast<size_t>(rank)]; }

// Null: nobody receives there.
const PublicationPlan::Receivers* PublicationPlan::host_with(int rank) const {
  const auto found = std::ranges::find_if(hosts_, [&](const Receivers& host) { return host_of(host[0]) == host_of(rank); });
  return found == hosts_.end() ? nullptr : &*found;
}

// Who brings the piece in.
int PublicationPlan::first_on(const Receivers& host, const PublishedPiece& piece) const {
  if (has(host, piece.owner)) return piece.owner;
  return host[piece.turn / hosts_.size() % host.size()];
}

// The one after that of the owner whose turn it is, among the others; null: there is no other one.
const PublicationPlan::Receivers* PublicationPlan::first_host(const PublishedPiece& piece) const {
  const Receivers* const own = host_with(piece.owner);
  const size_t others = hosts_.size() - (own == nullptr ? 0 : 1);
  if (others == 0) return nullptr;
  const Receivers* const host = &hosts_[piece.turn % others];
  return own != nullptr && host >= own ? host + 1 : host;
}

// The one after another, round and round, without that of the owner.
const PublicationPlan::Receivers* PublicationPlan::next_host(const PublishedPiece& piece, const Receivers* host) const {
  do {
    if (++host == hosts_.data() + hosts_.size()) host = hosts_.data();
  } while (host == host_with(piece.owner));
  return host;
}

std::vector<int> PublicationPlan::sharers(int receiver) const {
  if (!is_receiver(receiver)) return {};
  return direct_ ? Receivers{receiver} : *host_with(receiver);
}

int PublicationPlan::bringer(const PublishedPiece& piece, int receiver) const {
  return direct_ ? receiver : first_on(*host_with(receiver), piece);
}

std::vector<int> PublicationPlan::targets(const PublishedPiece& piece, int rank) const {
  if (direct_) return rank == piece.owner ? others_than(rank) : std::vector<int>();
  const Receivers* const first = first_host(piece);
  const Receivers* const own = host_with(rank);
  const Receivers* next = rank == piece.owner ? first : nullptr;
  if (rank != piece.owner) {
    const bool is_from_elsewhere = is_receiver(rank) && host_of(rank) != host_of(piece.owner);
    if (!is_from_elsewhere || first_on(*own, piece) != rank) return {};
    next = next_host(piece, own);
    if (next == first) next = nullptr;  // it has gone round
  }
  std::vector<int> targets;
  if (next != nullptr) targets.push_back(first_on(*next, piece));
  if (own != nullptr && first_on(*own, piece) != rank) targets.push_back(first_on(*own, piece));
  return targets;
}

std::vector<int> PublicationPlan::others_than(int rank) const {
  std::vector<int> others = layout_.receivers;
  std::erase(others, rank);
  return others;
}

int PublicationPlan::source(const PublishedPiece& piece, int receiver) const {
  if (direct_) return piece.owner;
  const Receivers* const host = host_with(receiver);
  if (host_of(receiver) == host_of(piece.owner)) return piece.owner;
  const Receivers* before = first_host(piece);
  if (host == before) return piece.owner;
  for (const Receivers* next = next_host(piece, before); next != host; next = next_host(piece, next)) before = next;
  return first_on(*before, piece);
}

}  // namespace sluice::comm
