#include "models/forward/value_head.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>

#include <utility>
#include <vector>

#include "base/error.h"
#include "models/layers/gradient.h"
#include "models/layers/matrix_products.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {

at::Tensor head_values(const at::Tensor& hidden, const at::Tensor& head) {
  SLUICE_CHECK(hidden.dim() == 2 && head.dim() == 2 && head.size(0) == 1 && hidden.size(1) == head.size(1),
               "hidden [A,H] and head [1,H] must agree in H");
  if (!hidden.is_cpu()) return at::matmul(hidden, head.squeeze(0).to(at::kFloat));
  const at::Tensor rows = hidden.detach().contiguous(), weight = head.detach().to(at::kFloat);
  const at::Tensor values = at::empty({hidden.size(0)});
  multiply(rows, packed({weight}, Precision::kFloat32), {}, values.unsqueeze(1));
  if (!records_gradient({hidden, head})) return values;
  const bool wants_hidden = wants_gradient(hidden);
  attach_backward({values}, hidden, {head}, [rows, weight, head, wants_hidden](std::vector<at::Tensor>&& gradients) {
    const at::Tensor grad = owned(std::move(gradients[0])).unsqueeze(1);  // [A,1]
    add_weight_gradient(gradient_of(head), grad, rows);
    return wants_hidden ? grad.mul(weight) : at::Tensor();
  });
  return values;
}

PartBytes head_values_bytes(const ModelConfig& config, int64_t rows) {
  const TensorShape values{rows, 1}, grad_hidden{rows, config.hidden_size}, head{1, config.hidden_size};
  return {.kept = 0, .forward = values.bytes(), .backward = grad_hidden.bytes() + head.bytes()};
}

}  // namespace sluice::models
