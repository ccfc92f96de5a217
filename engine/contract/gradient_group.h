#pragma once

#include <cstdint>
#include <functional>
#include <span>

namespace sluice::engine {

/// Adds the gradients of one model over all ranks of a run. One a model and rank; a rank that is alone has none.
///
/// Operations of one group run in the order of their calls, which is the same on all ranks: the plan says who trains a model, and
/// one node does. Nobody waits inside a call. Failure: a rank that is lost ends the run, and `done` is not called.
class GradientGroup {
 public:
  virtual ~GradientGroup() = default;

  /// `parts`: what this rank has, a buffer of `count` floats for each of the subtrees of its slots (base/sum_tree.h), all of them at
  /// least one. At last the first holds the sum over the slots of all ranks, added as the tree says, the same bits on all ranks, and
  /// the others are zero; then `done` is called, on some thread. It must not throw. The buffers stay until then.
  virtual void sum(std::span<float* const> parts, int64_t count, std::function<void()> done) = 0;

  /// This rank's run has failed, or is over: nothing is added any more. Each `done` that has not been called is, once nobody uses its
  /// buffers, with gradients that mean nothing; so is that of every later sum.
  virtual void abandon() {}
};

}  // namespace sluice::engine
