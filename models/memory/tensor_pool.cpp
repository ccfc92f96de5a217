#include "models/memory/tensor_pool.h"

#include <c10/core/CPUAllocator.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr size_t kSmallest = 64 * 1024;
constexpr size_t kSteps = 16;    // sizes of blocks from one power of two to the next
constexpr size_t kReuse = 16;    // a block serves what takes all but this part of it
constexpr size_t kReserve = 16;  // the part of the most bytes in use, but for lasting ones, that may be held beside them
constexpr size_t kPage = 4096, kLargePage = 1 << 21;

// Blocks begin at different places of a page: a kernel that reads rows of several tensors would find them all in the same sets of
// the first-level cache.
constexpr size_t kShift = 320, kShifts = 8;

size_t whole(size_t bytes, size_t of) { return (bytes + of - 1) / of * of; }

// Micro-batches differ by a few tokens: what their tensors take is rounded so that most take the same.
size_t block_bytes(size_t bytes) { return whole(bytes, std::max(kPage, std::bit_floor(bytes) / kSteps)); }

}  // namespace

/// Lies in front of the tensor.
struct alignas(64) TensorPool::Block {
  TensorPool* pool;  // null: malloc's
  void* memory;      // where it begins
  size_t bytes;      // of it

  void* data() { return this + 1; }
  static Block* of(void* data) { return static_cast<Block*>(data) - 1; }
};

TensorPool::~TensorPool() { unmap_free(); }

void TensorPool::unmap_free() {
  for (const auto& [bytes, block] : free_) unmap(block);
  free_.clear();
}

TensorPool& TensorPool::of_process() {
  static TensorPool* const pool = new TensorPool;  // tensors may outlive everything else
  return *pool;
}

void TensorPool::install() { c10::SetCPUAllocator(&of_process()); }

void TensorPool::keep_freed() {
  const std::scoped_lock lock(mutex_);
  unmap_free();
  keeps_ = true;
  lasting_ = most_used_ = used_;
}

c10::DataPtr TensorPool::allocate(size_t bytes) {
  const c10::Device cpu(c10::DeviceType::CPU);
  if (bytes == 0) return {nullptr, nullptr, give_back, cpu};
  Block* const block = bytes < kSmallest ? small(bytes) : take(bytes + sizeof(Block) + kShift * kShifts);
  void* const data = block->data();
  c10::profiledCPUMemoryReporter().New(data, bytes);
  return {data, data, give_back, cpu};
}

void TensorPool::copy_data(void* to, const void* from, size_t bytes) const { default_copy_data(to, from, bytes); }

size_t TensorPool::held_bytes() const {
  const std::scoped_lock lock(mutex_);
  return held_;
}

size_t TensorPool::used_bytes() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

// With the lock held: how much more may be held when so many bytes come into use.
bool TensorPool::may_grow(size_t bytes) const {
  const size_t used = std::max(most_used_, used_ + bytes);
  return held_ + bytes <= used + (used - std::min(used, lasting_)) / kReserve;
}

// With the lock held. Rather than give memory back for other memory, a block is taken that is much too large, where as much was
// in use before.
bool TensorPool::serves(size_t block, size_t bytes) const {
  if (block <= bytes + bytes / kReuse) return true;
  return !may_grow(bytes) && block <= 2 * bytes && used_ + block <= most_used_;
}

// What comes before keep_freed() lasts, and is not rounded: large pages would make all of a block memory.
TensorPool::Block* TensorPool::take(size_t needed) {
  const std::scoped_lock lock(mutex_);
  const size_t bytes = keeps_ ? block_bytes(needed) : whole(needed, kPage);
  const auto fitting = free_.lower_bound(bytes);
  Block* block = nullptr;
  if (fitting != free_.end() && serves(fitting->first, bytes)) {
    block = fitting->second;
    free_.erase(fitting);
  } else {
    while (!free_.empty() && !may_grow(bytes)) {
      const auto largest = std::prev(free_.end());
      unmap(largest->second);
      free_.erase(largest);
    }
    block = map(bytes);
  }
  used_ += block->bytes;
  most_used_ = std::max(most_used_, used_);
  return block;
}

void TensorPool::give_back(void* data) {
  if (data == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(data);
  Block* const block = Block::of(data);
  if (block->pool == nullptr) return std::free(block->memory);
  TensorPool& pool = *block->pool;
  const std::scoped_lock lock(pool.mutex_);
  pool.used_ -= block->bytes;
  if (!pool.keeps_) return pool.unmap(block);
  pool.free_.emplace(block->bytes, block);
}

TensorPool::Block* TensorPool::small(size_t bytes) {
  void* const memory = std::aligned_alloc(alignof(Block), whole(bytes + sizeof(Block), alignof(Block)));
  if (memory == nullptr) throw std::bad_alloc();
  return new (memory) Block{.pool = nullptr, .memory = memory, .bytes = bytes};
}

TensorPool::Block* TensorPool::map(size_t bytes) {
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // A wish that the system may ignore.
  if (bytes >= kLargePage) madvise(memory, bytes, MADV_HUGEPAGE);
  held_ += bytes;
  const size_t shift = kShift * (next_shift_++ % kShifts);
  return new (static_cast<char*>(memory) + shift) Block{.pool = this, .memory = memory, .bytes = bytes};
}

void TensorPool::unmap(Block* block) {
  held_ -= block->bytes;
  SLUICE_CHECK(munmap(block->memory, block->bytes) == 0, "a block of tensors could not be given back");
}

}  // namespace sluice::models
