#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <map>
#include <mutex>

namespace sluice::models {

/// Memory of large tensors on the CPU, kept for the next tensor of about the same size. Every micro-batch allocates what the one
/// before freed; malloc gives blocks of megabytes back to the system, which clears them page by page at their next use.
///
/// Sizes are rounded up, so that micro-batches that differ by some tokens take the same blocks. A block is served again to
/// whoever asks for its size or a sixteenth less. What is held is at most a sixteenth more than what was in use at a time, not
/// counting what lasts: beyond that a block twice as large as asked for serves too, or else blocks that nobody uses go back to
/// the system before a new one comes. Blocks of 2 MB and more ask for large pages. Tensors below 64 kB are malloc's.
///
/// While models are loaded nothing is used twice: until keep_freed() a block that is freed goes back at once.
///
/// Any thread may allocate and free. Throws std::bad_alloc. Outlives every tensor that it made.
class TensorPool final : public c10::Allocator {
 public:
  TensorPool() = default;
  ~TensorPool() override;
  TensorPool(const TensorPool&) = delete;
  TensorPool& operator=(const TensorPool&) = delete;

  /// From now on every CPU tensor of the process comes from of_process(). A program calls it first.
  static void install();

  /// The one pool that install() installs. It is never destroyed.
  static TensorPool& of_process();

  /// What is in use now lasts: weights, optimizers. From now on blocks that are freed are kept. May be called again.
  void keep_freed();

  c10::DataPtr allocate(size_t bytes) override;
  c10::DeleterFnPtr raw_deleter() const override { return give_back; }
  void copy_data(void* to, const void* from, size_t bytes) const override;

  size_t held_bytes() const;  // used or not
  size_t used_bytes() const;

 private:
  struct Block;

  static void give_back(void* data);
  void unmap_free();
  bool may_grow(size_t bytes) const;
  bool serves(size_t block, size_t bytes) const;
  Block* take(size_t needed);
  Block* map(size_t bytes);
  Block* small(size_t bytes);
  void unmap(Block* block);

  mutable std::mutex mutex_;
  std::multimap<size_t, Block*> free_;  // by size
  size_t held_ = 0, used_ = 0, most_used_ = 0, lasting_ = 0;
  bool keeps_ = false;
  size_t next_shift_ = 0;
};

}  // namespace sluice::models
