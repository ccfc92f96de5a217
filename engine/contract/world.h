#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/exact_sum.h"
#include "engine/contract/metric_spec.h"

namespace sluice::engine {

/// One process of a run among all of them.
struct World {
  int rank = 0;
  int size = 1;

  /// Who makes the samples of a group. Groups have the same index everywhere, so a sample does not depend on the size.
  bool has_group(int64_t index) const { return index % size == rank; }
};

/// What a rank has of one named number. Parts of the same name are added without rounding, so the result does not depend on how
/// many ranks there are or on who came first.
struct Part {
  std::string name;
  Metric kind = Metric::kSum;
  ExactMoments numbers;
  double top = 0;         // of kMaximum and kValue; counts where `numbers` have weight
  bool recorded = false;  // the rank has anything of it

  void add(const Part& other);
};

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
    static constexpr int64_t kEnd = -1, kMetrics = -2;

    auto operator<=>(const Key&) const = default;
  };
  using Done = std::function<void(Contribution)>;

  virtual ~Reductions() = default;

  virtual World world() const = 0;

  /// `done` is called once, with the sum over all ranks: at once or later, on some thread. It must not throw.
  virtual void combine(const Key& key, Contribution mine, Done done) = 0;

  /// After it returns, no `done` is called any more: this rank's run has failed, or is over.
  virtual void abandon() {}
};

/// A run of one process: what it has is all there is.
class OneProcess final : public Reductions {
 public:
  World world() const override { return {}; }
  void combine(const Key&, Contribution mine, Done done) override { done(std::move(mine)); }
};

}  // namespace sluice::engine
