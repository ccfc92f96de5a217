#include "comm/parcels/block_pool.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "base/error.h"

namespace sluice::comm {
namespace {

constexpr size_t kSmallestBlock = size_t{1} << 20;

size_t whole_pages(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

}  // namespace

class BlockPool::Blocks : public std::enable_shared_from_this<Blocks> {
 public:
  std::shared_ptr<Block> take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    granted_ += bytes;
    most_granted_ = std::max(most_granted_, granted_);
    std::unique_ptr<Block> block = take_free(bytes);
    if (!block) block = std::make_unique<Block>(next_id_++, std::bit_ceil(std::max(bytes, kSmallestBlock)));
    held_ += std::max(block->written, bytes) - block->written;
    block->written = std::max(block->written, bytes);
    block->granted = bytes;
    used_.push_back(block.get());
    keep_within_grants();
    most_held_ = std::max(most_held_, held_);
    return {block.release(), [self = shared_from_this()](Block* used) { self->give_back(std::unique_ptr<Block>(used)); }};
  }

  std::shared_ptr<Block> take_own(size_t bytes) {
    const std::lock_guard lock(mutex_);
    return owned(std::make_unique<Block>(next_id_++, bytes));
  }

  std::shared_ptr<Block> take_lent(SharedMemory memory) {
    const std::lock_guard lock(mutex_);
    return owned(std::make_unique<Block>(next_id_++, std::move(memory)));
  }

  void retire(Block& block) {
    const std::lock_guard lock(mutex_);
    block.is_retired = true;
  }

  std::vector<Gone> take_gone() {
    const std::lock_guard lock(mutex_);
    return std::exchange(gone_, {});
  }

  int64_t most_held() {
    const std::lock_guard lock(mutex_);
    return static_cast<int64_t>(most_held_);
  }

  void close() {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    free_.clear();
  }

 private:
  std::shared_ptr<Block> owned(std::unique_ptr<Block> block) {
    return {block.release(), [self = shared_from_this()](Block* used) { self->drop(std::unique_ptr<Block>(used)); }};
  }

  void drop(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    if (!is_closed_) gone_.push_back({block->id, std::move(block->known_to)});
  }

  void give_back(std::unique_ptr<Block> block) {
    const std::lock_guard lock(mutex_);
    std::erase(used_, block.get());
    granted_ -= std::exchange(block->granted, 0);
    if (block->is_retired) {
      held_ -= block->written;
      if (!is_closed_) gone_.push_back({block->id, std::move(block->known_to)});
    } else if (!is_closed_) {
      free_.push_back(std::move(block));
    }
  }

  // Of those that are large enough the one that has the least written; of these the last one, which is most likely in a cache.
  std::unique_ptr<Block> take_free(size_t bytes) {
    auto best = free_.end();
    for (auto i = free_.begin(); i != free_.end(); ++i)
      if ((*i)->memory.bytes() >= bytes && (best == free_.end() || (*i)->written <= (*best)->written)) best = i;
    if (best == free_.end()) return nullptr;
    std::unique_ptr<Block> block = std::move(*best);
    free_.erase(best);
    return block;
  }

  void keep_within_grants() {
    while (held_ > most_granted_ && !free_.empty()) {
      Block& oldest = *free_.front();
      held_ -= oldest.written;
      gone_.push_back({oldest.id, std::move(oldest.known_to)});
      free_.erase(free_.begin());
    }
    for (Block* const block : used_) {
      if (held_ <= most_granted_) break;
      if (block->written == block->granted) continue;
      block->memory.clear_from(whole_pages(block->granted));
      held_ -= std::exchange(block->written, block->granted) - block->granted;
    }
  }

  std::mutex mutex_;  // of all below
  bool is_closed_ = false;
  uint32_t next_id_ = 0;
  size_t granted_ = 0, most_granted_ = 0;
  size_t held_ = 0, most_held_ = 0;  // what all blocks have written
  std::vector<std::unique_ptr<Block>> free_;
  std::vector<Block*> used_;
  std::vector<Gone> gone_;
};

BlockPool::BlockPool() : blocks_(std::make_shared<Blocks>()) {}

BlockPool::~BlockPool() { blocks_->close(); }

std::shared_ptr<Block> BlockPool::take(size_t bytes) {
  SLUICE_CHECK(bytes > 0, "a block of no bytes");
  return blocks_->take(bytes);
}

std::shared_ptr<Block> BlockPool::take_own(size_t bytes) {
  SLUICE_CHECK(bytes > 0, "a block of no bytes");
  return blocks_->take_own(bytes);
}

std::shared_ptr<Block> BlockPool::take_lent(Descriptor memory, size_t bytes) {
  return blocks_->take_lent(SharedMemory::to_pass_on(std::move(memory), bytes));
}

void BlockPool::retire(Block& block) { blocks_->retire(block); }

std::vector<BlockPool::Gone> BlockPool::take_gone() { return blocks_->take_gone(); }

int64_t BlockPool::most_held() const { return blocks_->most_held(); }

}  // namespace sluice::comm
