#include "models/sample/prefix_index.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace sluice::models {

PrefixIndex::PrefixIndex(int64_t blocks, int64_t block_size)
    : block_size_(block_size),
      entries_(static_cast<size_t>(blocks)),
      tokens_(static_cast<size_t>(blocks * block_size)),
      buckets_(std::bit_ceil(static_cast<size_t>(blocks + 1) / 2), -1) {}

std::optional<PrefixIndex::Piece> PrefixIndex::find(uint64_t parent, std::span<const int64_t> tokens) const {
  for (int32_t block = buckets_[bucket_of(parent, tokens)]; block >= 0; block = entries_[block].next) {
    const Entry& entry = entries_[block];
    if (entry.parent == parent && std::ranges::equal(tokens_of(block), tokens)) return Piece{entry.number, block};
  }
  return std::nullopt;
}

PrefixIndex::Piece PrefixIndex::insert(uint64_t parent, std::span<const int64_t> tokens, int32_t block) {
  SLUICE_CHECK(!holds(block) && !tokens.empty() && static_cast<int64_t>(tokens.size()) <= block_size_,
               "a KV block cannot hold this piece of a prompt");
  Entry& entry = entries_[block];
  int32_t& first = buckets_[bucket_of(parent, tokens)];
  entry = {.number = ++last_number_,
           .parent = parent,
           .size = static_cast<int64_t>(tokens.size()),
           .next = first,
           .bucket = bucket_of(parent, tokens)};
  first = block;
  std::ranges::copy(tokens, tokens_.begin() + block * block_size_);
  return {entry.number, block};
}

void PrefixIndex::forget(int32_t block) {
  Entry& entry = entries_[block];
  if (entry.number == kRoot) return;
  int32_t* link = &buckets_[entry.bucket];
  while (*link != block) link = &entries_[*link].next;
  *link = entry.next;
  entry = {};
}

size_t PrefixIndex::bucket_of(uint64_t parent, std::span<const int64_t> tokens) const {
  uint64_t hash = parent + 0x9e3779b97f4a7c15;
  for (const int64_t token : tokens) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 0xbf58476d1ce4e5b9;
    hash ^= hash >> 29;
  }
  return hash & (buckets_.size() - 1);
}

std::span<const int64_t> PrefixIndex::tokens_of(int32_t block) const {
  return std::span(tokens_).subspan(static_cast<size_t>(block * block_size_), static_cast<size_t>(entries_[block].size));
}

}  // namespace sluice::models
