#include "comm/weights/publication_plan.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"

namespace sluice::comm {
namespace {

constexpr size_t kMostPiece = size_t{4} << 20;  // a receiver hands on what has come whole
constexpr size_t kAlignedPiece = 64;            // a cache line

bool has(const std::vector<int>& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

// The least multiple of `unit` that is at least so much.
size_t rounded_up(size_t count, size_t unit) { return (count + unit - 1) / unit * unit; }

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
  const size_t receivers = layout_.receivers.size();
  const size_t count = rounded_up(rounded_up(owned.range.size(), kMostPiece) / kMostPiece, receivers);
  const size_t size = rounded_up(rounded_up(owned.range.size(), count) / count, kAlignedPiece);
  // Small ranges do not reach all receivers: those of the next bucket, or of the next owner, begin at another one.
  const size_t turn = static_cast<size_t>(bucket) + static_cast<size_t>(owned.owner);
  for (size_t begin = owned.range.begin, i = 0; begin < owned.range.end; begin += size, ++i) {
    pieces_.push_back({.bucket = bucket,
                       .number = number++,
                       .owner = owned.owner,
                       .first = layout_.receivers[(turn + i) % receivers],
                       .range = {begin, std::min(begin + size, owned.range.end)},
                       .owned = owned.range});
  }
}

bool PublicationPlan::is_owner(int rank) const { return has(owners_, rank); }

bool PublicationPlan::is_receiver(int rank) const { return has(layout_.receivers, rank); }

std::vector<int> PublicationPlan::targets(const PublishedPiece& piece, int rank) const {
  const bool hands_on = rank == piece.first;
  if (!hands_on && rank == piece.owner) return {piece.first};
  std::vector<int> targets;
  for (const int receiver : layout_.receivers)
    if (hands_on && receiver != rank && receiver != piece.owner) targets.push_back(receiver);
  return targets;
}

int PublicationPlan::source(const PublishedPiece& piece, int receiver) const {
  if (receiver == piece.owner) return receiver;
  return receiver == piece.first ? piece.owner : piece.first;
}

}  // namespace sluice::comm
