#include "models/layers/mlp_half.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <utility>

#include "models/kernels/parallel.h"
#include "models/kernels/training_kernels.h"
#include "models/layers/matrix_products.h"
#include "models/layers/operand.h"
#include "models/layers/projection.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrain = 1 << 14;  // elements: some 10 us of work

// The projections of some tokens before the activation.
struct Inner {
  at::Tensor gate, up;  // [T,I]; no `up` in a plain network

  Inner rows(int64_t first, int64_t count) const {
    const auto part = [&](const at::Tensor& x) { return x.defined() ? x.narrow(0, first, count) : x; };
    return {part(gate), part(up)};
  }
};

Inner empty_inner(const LayerPass& pass, Precision precision, int64_t tokens) {
  const auto empty = [&] { return empty_operand(precision, {tokens, pass.config.intermediate_size}); };
  return {empty(), pass.config.gated_mlp ? empty() : at::Tensor()};
}

template <class Number>
Number* at_or_null(Number* from, int64_t place) {
  return from ? from + place : nullptr;
}

// From projections in float32 to an operand; `kept` becomes them, rounded, if it is defined.
void activate(Activation activation, const Inner& inner, const Inner& kept, const at::Tensor& out) {
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

// `inner` becomes its gradients, `grad`, of what the activation gave, becomes what it gave.
void differentiate(Activation activation, const Inner& inner, const at::Tensor& grad) {
  with_number(precision_of(grad), [&](auto number) {
    using Number = decltype(number);
    auto *gate = numbers<Number>(inner.gate), *up = numbers<Number>(inner.up), *of_output = numbers<Number>(grad);
    parallel_ranges(grad.numel(), kGrain, [&](int64_t begin, int64_t end) {
      activation_backward(activation, gate + begin, at_or_null(up, begin), end - begin, of_output + begin);
    });
  });
}

// The projection that goes into the activation: of a plain network, its only one.
Projection entry_of(const LayerWeights& l) {
  return l.gate.defined() ? Projection{l.gate, l.gate_bias, l.adapters.gate} : Projection{l.up, l.up_bias, l.adapters.up};
}
Projection up_of(const LayerWeights& layer) { return {layer.up, layer.up_bias, layer.adapters.up}; }
Projection down_of(const LayerWeights& layer) { return {layer.down, layer.down_bias, layer.adapters.down}; }

template <class Work>
void for_each_chunk(int64_t tokens, int64_t of_chunk, const Work& work) {
  for (int64_t first = 0; first < tokens; first += of_chunk) work(first, std::min(of_chunk, tokens - first));
}

// What the network makes of `in`; written to or added to `out`.
void feed_forward(const LayerPass& pass, const LayerWeights& layer, const at::Tensor& in, const Inner& kept,
                  const at::Tensor& out, bool add) {
  const int64_t tokens = in.size(0), of_chunk = std::min(kForwardTokens, tokens);
  const PackedMatrix gate = packed({entry_of(layer).weight}, pass.precision), down = packed({layer.down}, pass.precision);
  const PackedMatrix up = layer.gate.defined() ? packed({layer.up}, pass.precision) : PackedMatrix();
  const Inner all = empty_inner(pass, Precision::kFloat32, of_chunk);
  const at::Tensor activated = empty_operand(pass.precision, {of_chunk, pass.config.intermediate_size});
  for_each_chunk(tokens, kForwardTokens, [&](int64_t first, int64_t count) {
    const Inner inner = all.rows(0, count);
    const at::Tensor from = in.narrow(0, first, count), result = activated.narrow(0, 0, count);
    project(entry_of(layer), gate, from, inner.gate);
    if (!up.empty()) project(up_of(layer), up, from, inner.up);
    activate(pass.config.activation, inner, kept.rows(first, count), result);
    project(down_of(layer), down, result, out.narrow(0, first, count), add);
  });
}

}  // namespace

at::Tensor mlp_forward(const LayerPass& pass, const LayerWeights& layer, at::Tensor x, KeptMlp* kept) {
  KeptRead read = read_residual(pass, x, pass.norm(layer.mlp_norm, layer.mlp_norm_bias));
  const Inner inner = kept ? empty_inner(pass, pass.precision, x.size(0)) : Inner{};
  KeptNorm added_norm;
  at::Tensor result;
  if (pass.adds_normed()) {
    const at::Tensor added = at::empty_like(x);
    feed_forward(pass, layer, read.in, inner, added, false);
    result = add_normed(x, added, pass.norm(layer.mlp_output_norm), added_norm);
  } else {
    result = kept ? x.clone(at::MemoryFormat::Contiguous) : std::move(x);
    feed_forward(pass, layer, read.in, inner, result, true);
  }
  if (kept) *kept = {std::move(read), inner.gate, inner.up, std::move(added_norm)};
  return result;
}

void mlp_backward(const LayerPass& pass, const LayerWeights& layer, const KeptMlp& kept, const at::Tensor& grad) {
  const int64_t tokens = grad.size(0);
  const at::Tensor added = added_gradient(pass, pass.norm(layer.mlp_output_norm), kept.added_norm, grad);
  const PackedMatrix down = packed_transposed(layer.down, pass.precision),
                     gate = packed_transposed(entry_of(layer).weight, pass.precision);
  const PackedMatrix up = kept.up.defined() ? packed_transposed(layer.up, pass.precision) : PackedMatrix();
  const at::Tensor activated = empty_operand(pass.precision, {std::min(kBackwardTokens, tokens), pass.config.intermediate_size});
  const ReadGradient read = read_gradient(pass, grad);
  for_each_chunk(tokens, kBackwardTokens, [&](int64_t first, int64_t count) {
    const Inner inner = Inner{kept.gate, kept.up}.rows(first, count);
    const at::Tensor result = activated.narrow(0, 0, count), from = added.narrow(0, first, count);
    project_back(down_of(layer), down, from, result, false);
    differentiate(pass.config.activation, inner, result);
    add_gradients(down_of(layer), from, result);
    const at::Tensor in = kept.read.in.narrow(0, first, count), to = read.out.narrow(0, first, count);
    add_gradients(entry_of(layer), inner.gate, in);
    project_back(entry_of(layer), gate, inner.gate, to, read.add);
    if (up.empty()) return;
    add_gradients(up_of(layer), inner.up, in);
    project_back(up_of(layer), up, inner.up, to, true);
  });
  finish_read_gradient(pass, pass.norm(layer.mlp_norm, layer.mlp_norm_bias), kept.read, read, grad);
}

}  // namespace sluice::models
