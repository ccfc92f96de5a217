#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

namespace sluice::engine {

/// When the tokens of a group take credit.
enum class Admission : uint8_t {
  kWorstCase,  // all that it can become, before it starts
  kOnDemand,   // its prompts first, then what its samples grow by
};

constexpr std::array<std::pair<Admission, const char*>, 2> enum_names(Admission) {
  return {{{Admission::kWorstCase, "worst_case"}, {Admission::kOnDemand, "on_demand"}}};
}

/// The tokens that may be in flight. Thread-safe. Never blocks: whoever is refused is told through `on_release` when to try
/// again. Virtual for tests, see ReplaceableParts.
class TokenBudget {
 public:
  /// `on_release` is called without a lock held, on the thread that released, when somebody was refused since it was last called.
  /// It must not throw.
  TokenBudget(int64_t capacity, std::function<void()> on_release) : capacity_(capacity), on_release_(std::move(on_release)) {}
  virtual ~TokenBudget() = default;

  /// Takes `tokens` of credit if they are free. Throws InternalError once more was given back than was acquired.
  virtual bool try_acquire(int64_t tokens);

  /// Whether try_acquire would succeed now. Counts as being refused if not.
  virtual bool has_free(int64_t tokens) noexcept;

  /// Gives back credit that was acquired. Where that is more than was, the next try_acquire() or take_peak() says so: handles
  /// give back when they are destroyed.
  void release(int64_t tokens) noexcept;

  int64_t capacity() const { return capacity_; }
  int64_t in_flight() const;

  /// The most in flight since the last call. Throws as try_acquire() does.
  int64_t take_peak();

 private:
  void check() const;

  const int64_t capacity_;
  const std::function<void()> on_release_;
  mutable std::mutex mutex_;
  int64_t in_flight_ = 0;
  int64_t peak_ = 0;
  bool refused_ = false;
  bool broken_ = false;  // more was given back than was acquired
};

/// The credit of one group. It returns to the budget when the last micro-batch that holds the group is done with, so a group that
/// a filter hands on is held by the micro-batches on both sides of the filter. A handle; copies share the credit.
class Credit {
 public:
  Credit() = default;

  /// `tokens` were acquired from the budget, which outlives all handles.
  Credit(TokenBudget& budget, int64_t tokens);

  /// Returns a part at once. Only while there is one handle.
  void give_back(int64_t tokens);

  /// Takes more of the budget if it is free. Likewise.
  bool try_grow(int64_t tokens);

  int64_t tokens() const;

 private:
  struct Held;
  std::shared_ptr<Held> held_;
};

}  // namespace sluice::engine
