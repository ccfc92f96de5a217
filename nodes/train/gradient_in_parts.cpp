#include "nodes/train/gradient_in_parts.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>

#include <vector>

#include "nodes/train/optimizer_step.h"

namespace sluice::nodes {

double accumulate_in_parts(size_t parts, const std::function<at::Tensor(size_t)>& output_of,
                           const std::function<at::Tensor(const at::Tensor&)>& loss_of, const std::string& what) {
  std::vector<at::Tensor> outputs;
  {
    const at::NoGradGuard no_gradient;
    for (size_t i = 0; i < parts; ++i) outputs.push_back(output_of(i));
  }
  const at::Tensor joined = at::cat(outputs).set_requires_grad(true);  // a leaf: the gradient stops here
  const double loss = accumulate_gradient(loss_of(joined), what);
  int64_t first = 0;
  for (size_t i = 0; i < parts; ++i) {
    const int64_t count = outputs[i].numel();
    output_of(i).backward(joined.grad().narrow(0, first, count));
    first += count;
  }
  return loss;
}

}  // namespace sluice::nodes
