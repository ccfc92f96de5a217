#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/numbers/exact_sum.h"
#include "base/numbers/sum_tree.h"
#include "engine/contract/world/gradient_group.h"
#include "engine/contract/world/metric_spec.h"

namespace sluice::engine {

/// One process of a run among all of them, and the slots that the run's groups are dealt out to. The first ranks own them, each
/// as many as every other, those after each other. What a slot has does not depend on the number of ranks.
struct World {
  int rank = 0;
  int size = 1;
  int slots = 1;   // a multiple of owners()
  int owning = 0;  // ranks that own slots; 0: all

  int owners() const { return owning > 0 ? owning : size; }
  bool owns_slots() const { return rank < owners(); }
  SlotRange mine() const {
    return owns_slots() ? SlotRange{rank * (slots / owners()), (rank + 1) * (slots / owners())} : SlotRange{slots, slots};
  }

  /// The ranks that own slots, as a world of their own. Of one of them.
  World of_owners() const { return {.rank = rank, .size = owners(), .slots = slots}; }

  /// What a slot has of `total` groups that are dealt out to all of them.
  int64_t share_of_slot(int64_t total, int slot) const { return total * (slot + 1) / slots - total * slot / slots; }

  bool has_slot(int slot) const { return mine().first <= slot && slot < mine().last; }
};

/// What a rank has of one named number. Parts of the same name are added without rounding, so the result does not depend on how
/// many ranks there are or on who came first.
struct Part {
  std::string name;
  Metric kind = Metric::kSum;
  ExactMoments numbers;
  double top = 0;                    // of kMaximum and kValue; counts where it is recorded
  bool recorded = false;             // the rank has anything of it
  std::vector<int64_t> counts = {};  // whole numbers that are added place by place; the shorter list has zeros after it

  void add(const Part& other);

  /// Of kMaximum: NaN is above all, so that it does not depend on who comes first.
  void raise(double value);
};

/// One number of a rank: its share of a sum, or one of those of which the largest is taken.
Part sum_part(std::string name, double number);
Part maximum_part(std::string name, double number);

/// What a rank has under one key, in the order in which it is declared; what only some ranks have comes after that, by name.
using Contribution = std::vector<Part>;

/// Adds `other` to `all`. Throws InternalError when a name is of two kinds.
void add_contribution(Contribution& all, const Contribution& other);

/// Combines numbers of all ranks. A rank contributes once under each key; the plan says which keys there are, so that the ranks
/// agree without a word. Nobody waits inside a call, and keys may be contributed to in any order. Thread-safe.
class Reductions {
 public:
  struct Key {
    int64_t iteration = 0;
    int node = 0;       // index into Plan::nodes
    int64_t point = 0;  // a step of a barrier; or one of these
    static constexpr int64_t kEnd = -1, kMetrics = -2, kState = -3;
    static constexpr int64_t verdicts(int64_t round) { return -4 - round; }  // of a filter

    /// That a rank has written its part of a model, the one of this index in Plan::models; `at_the_end` of the run, or before.
    static Key saved(int64_t iterations, int model, bool at_the_end) { return {iterations, -2 - model, at_the_end ? 1 : 0}; }
    /// Whether the run is saved at its end.
    static Key last_save() { return {0, -1, 0}; }
    /// Which iteration is the last (engine/schedule/state/agreed_end.h).
    static Key agreed_end() { return {0, -1, 1}; }

    /// Of the work on an iteration after that one, which no rank needs once that is the last.
    bool is_behind(int64_t last) const {
      if (node == -1) return false;
      return (node < -1 ? iteration - 1 : iteration) > last;
    }

    auto operator<=>(const Key&) const = default;
  };
  using Done = std::function<void(Contribution)>;

  virtual ~Reductions() = default;

  /// Of this rank; how many slots there are, the plan says.
  virtual World world() const = 0;

  /// `done` is called once, with the sum over all ranks: at once or later, on some thread. It must not throw.
  virtual void combine(const Key& key, Contribution mine, Done done) = 0;

  /// Gives rank 0 a text under a key, before combine() is called with it. After that rank 0 has those of all others, by rank.
  virtual void give(const Key& /*key*/, std::string /*text*/) {}
  virtual std::vector<std::string> take_given(const Key& /*key*/) { return {}; }

  /// Who adds the gradients of a model over the ranks; null: this rank is alone. Lives as long as this.
  virtual GradientGroup* gradients(const std::string& /*model*/) { return nullptr; }

  /// Calls all ranks, this one too: each does what it has given to on_call(), on some thread, now or as soon as it gives it.
  virtual void call() {}
  virtual void on_call(std::function<void()> /*called*/) {}

  /// What waits for other ranks is called, with nothing: this rank's run has failed, or is over.
  virtual void abandon() {}

  /// Likewise, now and later, for what belongs to iterations after this one, which is the last that all ranks finish.
  virtual void abandon_behind(int64_t /*iteration*/) {}
};

/// A run of one process: what it has is all there is.
class OneProcess final : public Reductions {
 public:
  World world() const override { return {}; }
  void combine(const Key&, Contribution mine, Done done) override { done(std::move(mine)); }
  void call() override {
    if (called_) called_();
  }
  void on_call(std::function<void()> called) override { called_ = std::move(called); }

 private:
  std::function<void()> called_;  // set before call()
};

}  // namespace sluice::engine
