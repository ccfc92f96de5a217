#include "nodes/models/gradients/weight_hooks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <utility>

namespace sluice::nodes {

class WeightHooks::Hook final : public torch::autograd::FunctionPostHook {
 public:
  Hook(std::weak_ptr<const BackwardIsDone> done, size_t weight) : done_(std::move(done)), weight_(weight) {}

  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list& /*inputs*/) override {
    if (const auto done = done_.lock()) (*done)(weight_);
    return outputs;
  }

 private:
  const std::weak_ptr<const BackwardIsDone> done_;
  const size_t weight_;
};

WeightHooks::WeightHooks(const std::vector<at::Tensor>& weights, BackwardIsDone done)
    : done_(std::make_shared<const BackwardIsDone>(std::move(done))) {
  for (size_t i = 0; i < weights.size(); ++i) {
    accumulators_.push_back(torch::autograd::impl::grad_accumulator(weights[i]));
    accumulators_.back()->add_post_hook(std::make_unique<Hook>(done_, i));
  }
}

}  // namespace sluice::nodes
