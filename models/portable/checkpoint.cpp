#include "models/portable/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Work = std::function<at::Tensor(const at::Tensor&)>;

struct HeldWork : torch::CustomClassHolder {
  explicit HeldWork(Work work_) : work(std::move(work_)) {}
  Work work;
};

class Checkpoint : public torch::autograd::Function<Checkpoint> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const c10::intrusive_ptr<HeldWork>& held) {
    const at::NoGradGuard no_gradient;
    context->save_for_backward({x});
    context->saved_data["work"] = c10::IValue::make_capsule(held);
    return held->work(x);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::AutoGradMode with_gradient(true);
    const at::Tensor x = context->get_saved_variables()[0].detach().requires_grad_();
    const auto held = context->saved_data["work"].toCapsule();
    static_cast<HeldWork&>(*held).work(x).backward(gradients[0]);
    return {x.grad(), at::Tensor()};
  }
};

}  // namespace

// What x comes from may need no gradient (frozen embeddings) while the leaves that `work` reads do: the function is told that x
// does.
at::Tensor checkpointed(const Work& work, const at::Tensor& x) {
  const at::Tensor in = x.requires_grad() ? x : x.detach().requires_grad_();
  return Checkpoint::apply(in, c10::make_intrusive<HeldWork>(work));
}

}  // namespace sluice::models::portable
