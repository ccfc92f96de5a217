#include "models/sample/block_pool.h"

#include <algorithm>
#include <limits>
#include <string>

#include "base/error.h"

namespace sluice::models {

BlockPool::BlockPool(int64_t blocks) : free_(blocks) {
  SLUICE_CHECK(blocks > 0 && blocks < std::numeric_limits<int32_t>::max(), "a pool of KV blocks needs at least one");
  references_.resize(static_cast<size_t>(blocks));
  kept_.resize(static_cast<size_t>(blocks));
  times_taken_.resize(static_cast<size_t>(blocks));
  next_.resize(static_cast<size_t>(blocks) + 1);
  previous_.resize(static_cast<size_t>(blocks) + 1);
  next_.back() = previous_.back() = end();
  for (int32_t block = 0; block < end(); ++block) link_before(block, end());
}

int32_t BlockPool::take() {
  SLUICE_CHECK(free_ > 0,
               "the KV cache of " + std::to_string(blocks()) + " blocks is exhausted: more was admitted than it holds");
  const int32_t block = next_.back();
  kept_[block] = false;
  ++times_taken_[block];
  use(block);
  return block;
}

void BlockPool::share(int32_t block) {
  if (references(block) > 0) {
    ++references_[block];
    return;
  }
  SLUICE_CHECK(kept(block), "a KV block that is free and not kept was shared");
  use(block);
}

void BlockPool::release(int32_t block) {
  SLUICE_CHECK(references(block) > 0, "a KV block was given back twice");
  if (--references_[block] > 0) return;
  ++free_;
  link_before(block, kept(block) ? end() : next_.back());
}

void BlockPool::keep(int32_t block) {
  SLUICE_CHECK(references(block) > 0, "a KV block that is not in use cannot be kept");
  kept_[block] = true;
}

void BlockPool::forget(int32_t block) {
  if (!kept(block)) return;
  kept_[block] = false;
  if (references(block) > 0) return;
  unlink(block);
  link_before(block, next_.back());
}

void BlockPool::extend(std::vector<int32_t>& table, int64_t count) {
  const int64_t missing = count - static_cast<int64_t>(table.size());
  SLUICE_CHECK(missing <= free_,
               "the KV cache of " + std::to_string(blocks()) + " blocks is exhausted: more was admitted than it holds");
  for (int64_t i = 0; i < missing; ++i) table.push_back(take());
}

void BlockPool::release(std::vector<int32_t>& table) {
  for (; !table.empty(); table.pop_back()) release(table.back());
}

int64_t BlockPool::take_peak() {
  const int64_t peak = peak_;
  peak_ = in_use();
  return peak;
}

void BlockPool::use(int32_t block) {
  unlink(block);
  references_[block] = 1;
  --free_;
  peak_ = std::max(peak_, in_use());
}

void BlockPool::link_before(int32_t block, int32_t place) {
  const int32_t before = previous_[place];
  next_[before] = previous_[place] = block;
  previous_[block] = before;
  next_[block] = place;
}

void BlockPool::unlink(int32_t block) {
  next_[previous_[block]] = next_[block];
  previous_[next_[block]] = previous_[block];
}

}  // namespace sluice::models
