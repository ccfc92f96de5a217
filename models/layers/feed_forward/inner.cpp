#include "models/layers/feed_forward/inner.h"

#include "models/kernels/parallel.h"
#include "models/kernels/row_kernels.h"
#include "models/kernels/training_kernels.h"
#include "models/layers/operand.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements: some 10 us of work

template <class Number>
Number* at_or_null(Number* from, int64_t place) {
  return from ? from + place : nullptr;
}

}  // namespace

Inner::Inner(std::span<const at::Tensor> tensors) {
  if (tensors.empty()) return;
  gate = tensors[0];
  if (tensors.size() > 1) up = tensors[1];
}

Inner Inner::rows(int64_t first, int64_t count) const {
  Inner part = *this;
  if (gate.defined()) part.gate = gate.narrow(0, first, count);
  if (up.defined()) part.up = up.narrow(0, first, count);
  return part;
}

void activate_all(Activation activation, const Inner& inner, const Inner& kept, const at::Tensor& out) {
  const auto *gate = numbers<float>(inner.gate), *up = numbers<float>(inner.up);
  with_number(precision_of(out), [&](auto number) {
    using Number = decltype(number);
    auto *to = numbers<Number>(out), *kept_gate = numbers<Number>(kept.gate), *kept_up = numbers<Number>(kept.up);
    parallel_ranges(out.numel(), kGrain, [&](int64_t begin, int64_t end) {
      activation_forward<Number>(activation, gate + begin, at_or_null(up, begin), end - begin,
                                 {to + begin, at_or_null(kept_gate, begin), at_or_null(kept_up, begin)});
    });
  });
}

void differentiate(Activation activation, const Inner& inner, const at::Tensor& grad) {
  with_number(precision_of(grad), [&](auto number) {
    using Number = decltype(number);
    auto *gate = numbers<Number>(inner.gate), *up = numbers<Number>(inner.up), *of_output = numbers<Number>(grad);
    parallel_ranges(grad.numel(), kGrain, [&](int64_t begin, int64_t end) {
      activation_backward(activation, gate + begin, at_or_null(up, begin), end - begin, of_output + begin);
    });
  });
}

}  // namespace sluice::models
