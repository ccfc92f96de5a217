#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/world/device_exchange.h"

namespace sluice::engine {

/// Adds the gradients of one model over all ranks of a run, and gives all of them what each has made of its share. One a model
/// and rank; a rank that is alone has none.
///
/// Operations of one group run in the order of their calls, which is the same on all ranks: the plan says who trains a model, and
/// one node does. Nobody waits inside a call; `done` is called on some thread when this rank has what it asked for, and must not
/// throw. What was given stays until then. Failure: a rank that is lost ends the run, and `done` is not called.
///
/// `done` may be empty: nobody waits for that alone. Such an operation may be of an iteration that is dropped, and then never be
/// carried out, because other ranks do not ask for it; so what goes wrong with it is told when there is one that somebody waits
/// for.
class GradientGroup {
 public:
  /// Some of the sum, which begins at this float. On the thread of the group, in order; it must not throw.
  using Added = std::function<void(int64_t begin, std::span<const float> sum)>;

  virtual ~GradientGroup() = default;

  /// `parts`: what this rank has, a buffer of `count` floats for each of the subtrees of its slots (base/numbers/sum_tree.h), all
  /// of them at least one. At last the first holds the sum over the slots of all ranks, added as the tree says, the same bits on
  /// all ranks, and the others are zero.
  virtual void all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) = 0;

  /// Likewise, but the first holds the sum only of what this rank owns (base/numbers/float_range.h), and is zero elsewhere.
  /// `added` hears of each block of that.
  virtual void reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) = 0;

  /// Floats that go to another rank, or come from it.
  struct Stretch {
    int rank = 0;
    float* values = nullptr;
    int64_t count = 0;
  };

  /// Each rank gives others what is in `out`, and gets what they give it into `in`: for each two ranks at most one stretch each
  /// way, of which both know how long it is. Whatever the bits mean, they come as they are.
  virtual void exchange(std::vector<Stretch> out, std::vector<Stretch> in, std::function<void()> done) = 0;

  /// Of `values`, rank r has those from begins[r] up to begins[r + 1]. At last each rank has all.
  virtual void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) = 0;

  /// What moves floats between the devices of these ranks, this one's of that name; null: not all of them are on some that reach
  /// each other, and the host has to do it. Lives as long as this. Once, before anything else, on all ranks. Waits for: them to
  /// ask. Throws UserError.
  virtual DeviceExchange* device_exchange(const std::string& /*device*/) { return nullptr; }

  /// This rank's run has failed, or is over: nothing is done any more. Each `done` that has not been called is, once nobody uses
  /// its buffers, with numbers that mean nothing; so is that of everything later.
  virtual void abandon() {}

  /// As abandon(), and returns when nobody uses what was given. Not on the thread of the group.
  virtual void forget() { abandon(); }
};

}  // namespace sluice::engine
