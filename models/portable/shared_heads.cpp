#include "models/portable/shared_heads.h"

#include <ATen/core/ivalue.h>
#include <torch/csrc/autograd/custom_function.h>

#include <vector>

namespace sluice::models::portable {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Exchanged = std::vector<at::Tensor> (*)(const Segment&, const std::vector<at::Tensor>&);

struct HeldSegment : torch::CustomClassHolder {
  explicit HeldSegment(const Segment& of) : segment(of) {}
  Segment segment;
};

// [n,N,D] as [n,N*D], which ranks give each other.
variable_list side_by_side(at::TensorList heads) {
  variable_list flat;
  for (const at::Tensor& of : heads) flat.push_back(of.flatten(1));
  return flat;
}

variable_list apart(const variable_list& flat, int64_t head_dim) {
  variable_list heads;
  for (const at::Tensor& of : flat) heads.push_back(of.view({of.size(0), -1, head_dim}));
  return heads;
}

// What goes one way in the forward goes the other way in the backward.
template <Exchanged kForward, Exchanged kBackward>
class Exchange : public torch::autograd::Function<Exchange<kForward, kBackward>> {
 public:
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<HeldSegment>& held, at::TensorList heads) {
    context->saved_data["segment"] = c10::IValue::make_capsule(held);
    return apart(kForward(held->segment, side_by_side(heads)), heads.front().size(2));
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto held = context->saved_data["segment"].toCapsule();
    variable_list result =
        apart(kBackward(static_cast<HeldSegment&>(*held).segment, side_by_side(gradients)), gradients.front().size(2));
    result.insert(result.begin(), at::Tensor());  // of the segment
    return result;
  }
};

template <Exchanged kForward, Exchanged kBackward>
variable_list exchanged(const Segment& segment, const variable_list& heads) {
  // As a list, of which LibTorch knows that it has tensors.
  return Exchange<kForward, kBackward>::apply(c10::make_intrusive<HeldSegment>(segment), at::TensorList(heads));
}

}  // namespace

LayerMaths::Heads shared_heads(const Segment& segment, const LayerMaths::Heads& rows) {
  if (segment.is_whole()) return rows;
  const variable_list heads = exchanged<heads_of, rows_of>(segment, {rows.query, rows.key, rows.value});
  return {heads[0], heads[1], heads[2]};
}

at::Tensor own_rows(const Segment& segment, const at::Tensor& heads) {
  return segment.is_whole() ? heads : exchanged<rows_of, heads_of>(segment, {heads}).front();
}

}  // namespace sluice::models::portable
