#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace sluice::models {

/// Scratch memory of a step, aligned to cache lines: allocates only when it has to grow, and then forgets what it held. Values
/// are not initialised. Movable.
template <class T>
class GrownBuffer {
 public:
  /// Room for `count` values.
  T* at_least(int64_t count) {
    if (count > count_) grow(count);
    return data();
  }

  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  void grow(int64_t count) {
    constexpr size_t kLine = 64;
    const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    memory_.reset();
    memory_.reset(std::aligned_alloc(kLine, bytes));
    count_ = memory_ ? count : 0;
    if (!memory_) throw std::bad_alloc();
  }

  std::unique_ptr<void, Free> memory_;
  int64_t count_ = 0;
};

}  // namespace sluice::models
