#include "comm/weights/publication_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace sluice::comm {
namespace {

// A receiver hands a piece on when all of it is there. So at the end its last piece goes to the others one by one, on top of the
// time that all the bytes take: with so many pieces for each receiver that is less than this part of it.
constexpr size_t kLeastPieces = 32;
constexpr size_t kSmallestPiece = size_t{256} << 10, kLargestPiece = size_t{4} << 20;
constexpr size_t kAlignedPiece = 64;  // a cache line

bool has(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

size_t divided_up(size_t count, size_t by) { return (count + by - 1) / by; }

// The least multiple of `unit` that is at least so much.
size_t rounded_up(size_t count, size_t unit) { return divided_up(count, unit) * unit; }

size_t most_of_a_piece(size_t bytes, size_t receivers) {
  return std::clamp(bytes / (kLeastPieces * receivers), kSmallestPiece, kLargestPiece);
}

}  // namespace

PublicationPlan::PublicationPlan(engine::PublicationLayout layout) : layout_(std::move(layout)) {
  const std::vector<int>& receivers = layout_.receivers;
  const std::set<int> different(receivers.begin(), receivers.end());
  SLUICE_CHECK(!receivers.empty() && different.size() == receivers.size(), "weights for nobody, or for one rank twice");
  std::set<int> owners, ranks = different;
  size_t end = 0;
  for (int64_t bucket = 0; bucket < std::ssize(layout_.buckets); ++bucket) {
    const auto& ranges = layout_.buckets[static_cast<size_t>(bucket)];
    SLUICE_CHECK(!ranges.empty(), "a bucket of nobody");
    int64_t number = 0;
    for (const engine::OwnedBytes& owned : ranges) {
      SLUICE_CHECK(owned.range.begin == end && owned.range.end > end, "ranges of weights that do not follow one another");
      end = owned.range.end;
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
  const std::vector<int> firsts = firsts_of(owned.owner);
  const size_t most = most_of_a_piece(layout_.bytes(), layout_.receivers.size());
  const size_t count = rounded_up(divided_up(owned.range.size(), most), firsts.size());
  const size_t size = rounded_up(divided_up(owned.range.size(), count), kAlignedPiece);
  // Small ranges do not reach all receivers: those of the next bucket, or of the next owner, begin at another one.
  const size_t turn = static_cast<size_t>(bucket) + static_cast<size_t>(owned.owner);
  for (size_t begin = owned.range.begin, i = 0; begin < owned.range.end; begin += size, ++i) {
    pieces_.push_back({.bucket = bucket,
                       .number = number++,
                       .owner = owned.owner,
                       .first = firsts[(turn + i) % firsts.size()],
                       .range = {begin, std::min(begin + size, owned.range.end)},
                       .owned = owned.range});
  }
}

// An owner has its pieces; it gets them only where nobody else does.
std::vector<int> PublicationPlan::firsts_of(int owner) const {
  std::vector<int> firsts = layout_.receivers;
  if (firsts.size() > 1) std::erase(firsts, owner);
  return firsts;
}

bool PublicationPlan::is_owner(int rank) const { return has(owners_, rank); }

bool PublicationPlan::is_receiver(int rank) const { return has(layout_.receivers, rank); }

std::vector<int> PublicationPlan::targets(const PublishedPiece& piece, int rank) const {
  if (rank != piece.first) return rank == piece.owner ? std::vector{piece.first} : std::vector<int>();
  std::vector<int> targets = layout_.receivers;
  std::erase_if(targets, [&](int receiver) { return receiver == rank || receiver == piece.owner; });
  return targets;
}

int PublicationPlan::source(const PublishedPiece& piece, int receiver) const {
  return receiver == piece.first || receiver == piece.owner ? piece.owner : piece.first;
}

}  // namespace sluice::comm
