#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

namespace torch::autograd {
struct Node;
}

namespace sluice::nodes {

/// Tells, weight by weight, when a backward is done with it: its gradient has all that this backward adds. Also of weights to
/// which nothing travels (models/layers/gradient.h). On the thread of the backward, with the streams of devices that the thread
/// had that made this: it must be the one that trains, since gradients to which nothing travels are added on its streams.
/// Autograd may keep a hook longer than this, and then nobody is told.
class WeightHooks {
 public:
  using BackwardIsDone = std::function<void(size_t weight)>;

  WeightHooks(const std::vector<at::Tensor>& weights, BackwardIsDone done);

 private:
  class Hook;

  const std::shared_ptr<const BackwardIsDone> done_;                  // the hooks have it as long as this lives
  std::vector<std::shared_ptr<torch::autograd::Node>> accumulators_;  // by weight: what the hooks hang on
};

}  // namespace sluice::nodes
