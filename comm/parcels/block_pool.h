#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "comm/parcels/shared_memory.h"

namespace sluice::comm {

/// Memory for one parcel, of which only what was written takes any.
struct Block {
  Block(uint32_t number, size_t bytes) : id(number), memory(bytes) {}
  Block(uint32_t number, SharedMemory of_another) : id(number), memory(std::move(of_another)) {}

  const uint32_t id;
  SharedMemory memory;
  std::set<int> known_to;  // peers, by number, that may have it mapped; of the thread of the parcels alone
  size_t granted = 0;      // to the parcel that has it; of the pool, as what follows
  size_t written = 0;      // at most, since it was made or cleared
  bool is_retired = false;
};

/// Where the parcels of a rank come to, from all other ranks: used again and again, because the system clears every page before
/// it gives it to somebody, which takes ten times as long as to write it.
///
/// What it holds is never more than what was granted at one time, up to the end of a page for each block: it lets go of blocks
/// that are free, and of what is written after the end of what is granted, before it would.
///
/// Threads: any. Blocks may outlive the pool. Failure: take() throws what SharedMemory throws.
class BlockPool {
 public:
  /// A block that is no more, and who may still have it mapped.
  struct Gone {
    uint32_t id = 0;
    std::set<int> known_to;
  };

  BlockPool();
  ~BlockPool();

  /// A block of at least so many bytes, which is free again when nobody has the handle. `bytes` above 0.
  std::shared_ptr<Block> take(size_t bytes);

  /// A block of its own, of so many bytes, which is no more when nobody has the handle: not counted, and never used again.
  std::shared_ptr<Block> take_own(size_t bytes);

  /// Likewise, of memory that another rank has made, and that both have from then on.
  std::shared_ptr<Block> take_lent(Descriptor memory, size_t bytes);

  /// It is never used again, and is no more when nobody has the handle: somebody may still write into it.
  void retire(Block& block);

  /// Since the last call.
  std::vector<Gone> take_gone();

  /// What all blocks have held at most, free ones too.
  int64_t most_held() const;

 private:
  class Blocks;

  const std::shared_ptr<Blocks> blocks_;  // also of each block that is in use
};

}  // namespace sluice::comm
