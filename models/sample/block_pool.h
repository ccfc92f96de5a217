#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::models {

/// Which blocks of a KV cache are free, and how many sequences share each of the others. It counts; what the blocks hold is
/// KvCache's. A sequence's blocks are a table of numbers that its owner keeps.
///
/// A block whose last reference goes is free. Free blocks are taken again last freed, first taken, and before those that were
/// never used, so that memory which was never touched stays so. A kept block is one whose contents may be wanted again: when it
/// is free it is taken only after all that are not kept, the one that was freed first before the others, and until then share()
/// brings it back. Taking it ends that.
///
/// Allocates in its constructor alone. Not thread-safe.
class BlockPool {
 public:
  /// Of the blocks 0 .. blocks - 1, all free.
  explicit BlockPool(int64_t blocks);

  /// A free block, with one reference. Throws InternalError when there is none: who asks must have counted.
  int32_t take();

  /// One reference more, to a block that is in use or kept.
  void share(int32_t block);

  /// One reference fewer.
  void release(int32_t block);

  /// Marks a block that is in use as kept, or a kept one, in use or free, as not.
  void keep(int32_t block);
  void forget(int32_t block);

  /// Takes blocks until `table` has `count`. Throws InternalError, and leaves the table as it was, when there are not enough.
  void extend(std::vector<int32_t>& table, int64_t count);

  /// Releases the blocks of `table`, the last first, and empties it.
  void release(std::vector<int32_t>& table);

  /// How often take() gave the block: what was in it before is nobody's.
  int64_t times_taken(int32_t block) const { return times_taken_[static_cast<size_t>(block)]; }

  bool kept(int32_t block) const { return kept_[static_cast<size_t>(block)]; }
  int32_t references(int32_t block) const { return references_[static_cast<size_t>(block)]; }
  int64_t blocks() const { return static_cast<int64_t>(references_.size()); }
  int64_t free() const { return free_; }  // the kept ones among them included
  int64_t in_use() const { return blocks() - free_; }

  /// The most blocks that were in use at a time since the last call.
  int64_t take_peak();

 private:
  int32_t end() const { return static_cast<int32_t>(references_.size()); }
  void link_before(int32_t block, int32_t place);
  void unlink(int32_t block);
  void use(int32_t block);

  std::vector<int32_t> references_;
  std::vector<bool> kept_;
  std::vector<int64_t> times_taken_;
  std::vector<int32_t> next_, previous_;  // the ring of free blocks, in the order in which they are taken; end() closes it
  int64_t free_;
  int64_t peak_ = 0;
};

}  // namespace sluice::models
