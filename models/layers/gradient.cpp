#include "models/layers/gradient.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"

namespace sluice::models {
namespace {

// The weights are edges too, along which nothing goes: they make the outputs need a gradient where x needs none.
class BackwardNode final : public torch::autograd::Node {
 public:
  explicit BackwardNode(BackwardStep step) : step_(std::move(step)) {}

  torch::autograd::variable_list apply(torch::autograd::variable_list&& gradients) override {
    SLUICE_CHECK(step_ != nullptr, "a forward pass is differentiated once");
    const BackwardStep step = std::exchange(step_, nullptr);
    torch::autograd::variable_list result(num_outputs());
    result[0] = step(std::move(gradients));
    return result;
  }

  void release_variables() override { step_ = nullptr; }

 private:
  BackwardStep step_;
};

}  // namespace

bool records_gradient(const std::vector<at::Tensor>& inputs) {
  return at::GradMode::is_enabled() && std::ranges::any_of(inputs, wants_gradient);
}

at::Tensor gradient_of(const at::Tensor& weight) {
  if (!wants_gradient(weight)) return {};
  SLUICE_CHECK(weight.is_leaf(), "the gradient of a weight is summed up in place: it must be a leaf");
  at::Tensor& gradient = weight.mutable_grad();
  if (!gradient.defined()) gradient = at::zeros_like(weight, at::MemoryFormat::Contiguous);
  return gradient;
}

void attach_backward(const std::vector<at::Tensor>& outputs, const at::Tensor& x, const std::vector<at::Tensor>& weights,
                     BackwardStep step) {
  const std::shared_ptr<BackwardNode> node(new BackwardNode(std::move(step)), torch::autograd::deleteNode);
  torch::autograd::edge_list edges = torch::autograd::collect_next_edges(x);
  for (const at::Tensor& weight : weights) {
    if (wants_gradient(weight)) edges.push_back(torch::autograd::impl::gradient_edge(weight));
  }
  node->set_next_edges(std::move(edges));
  torch::autograd::set_history(outputs, node);
}

void run_backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients) {
  std::vector<at::Tensor> roots, given;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!gradients[i].defined() || !outputs[i].requires_grad()) continue;
    roots.push_back(outputs[i]);
    given.push_back(gradients[i]);
  }
  if (!roots.empty()) torch::autograd::backward(roots, given);
}

at::Tensor owned(at::Tensor&& gradient) {
  const at::Tensor own = std::move(gradient);
  const bool ours = own.use_count() == 1 && own.is_contiguous() && own.scalar_type() == at::kFloat;
  return ours ? own : own.to(at::kFloat).clone(at::MemoryFormat::Contiguous);
}

}  // namespace sluice::models
