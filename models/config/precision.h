#pragma once

#include <array>
#include <utility>

namespace sluice::models {

/// What a model computes in. bfloat16: the operands of products, what the backward keeps and the KV cache are bfloat16; sums, the
/// residual stream, norms, softmax, gradients of weights and what the optimizer steps are float32.
enum class Precision { kFloat32, kBfloat16 };

constexpr std::array<std::pair<Precision, const char*>, 2> enum_names(Precision) {
  return {{{Precision::kFloat32, "float32"}, {Precision::kBfloat16, "bfloat16"}}};
}

constexpr int bytes_of(Precision precision) { return precision == Precision::kFloat32 ? 4 : 2; }

}  // namespace sluice::models
