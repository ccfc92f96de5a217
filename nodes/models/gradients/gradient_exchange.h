#pragma once

#include <functional>

namespace sluice::nodes {

/// How the gradients of a model that several ranks train become their sum, and how all ranks get the weights that each has
/// stepped. Belongs to the thread that trains.
class GradientExchange {
 public:
  using Done = std::function<void()>;

  virtual ~GradientExchange() = default;

  /// As TrainedModel has it.
  virtual void expect_last_backward() {}

  /// `done`, on some thread: the optimizer has what it needs of the sum.
  virtual void add_up(const Done& done) = 0;

  /// Likewise: all ranks have the weights of the step.
  virtual void bring_weights(const Done& done) = 0;
};

}  // namespace sluice::nodes
