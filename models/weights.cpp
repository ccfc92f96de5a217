#include "models/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/clone.h>

#include "base/error.h"
#include "models/folder/weight_names.h"
#include "models/lora.h"

namespace sluice::models {

std::vector<std::pair<std::string, at::Tensor>> Weights::named() const {
  std::vector<std::pair<std::string, at::Tensor>> result;
  for (const auto& [name, tensor] : weight_slots(*this)) {
    const bool repeated = tensor == &head && head.is_same(embedding);
    if (tensor->defined() && !repeated) result.emplace_back(name, *tensor);
  }
  Weights handles = *this;
  for (const AdaptableMatrix& matrix : adaptable_matrices(handles)) {
    if (!matrix.adapter->defined()) continue;
    result.emplace_back(matrix.name + ".lora_A.weight", matrix.adapter->a);
    result.emplace_back(matrix.name + ".lora_B.weight", matrix.adapter->b);
  }
  return result;
}

std::vector<std::pair<std::string, at::Tensor>> Weights::trainable() const {
  auto result = named();
  std::erase_if(result, [](const auto& weight) { return !weight.second.requires_grad(); });
  return result;
}

Weights Weights::clone() const {
  const at::NoGradGuard no_gradient;
  Weights copy = *this;
  for (const auto& [name, tensor] : weight_slots(copy)) {
    if (tensor->defined()) *tensor = tensor->detach().clone();
  }
  if (head.defined() && head.is_same(embedding)) copy.head = copy.embedding;
  for (const AdaptableMatrix& matrix : adaptable_matrices(copy)) {
    if (!matrix.adapter->defined()) continue;
    matrix.adapter->a = matrix.adapter->a.detach().clone();
    matrix.adapter->b = matrix.adapter->b.detach().clone();
  }
  return copy;
}

void Weights::copy_from(const Weights& source) {
  const at::NoGradGuard no_gradient;
  const auto from = source.named(), to = named();
  SLUICE_CHECK(from.size() == to.size(), "weights of another architecture");
  for (size_t i = 0; i < to.size(); ++i) {
    SLUICE_CHECK(from[i].first == to[i].first && from[i].second.sizes() == to[i].second.sizes(), to[i].first);
    to[i].second.copy_(from[i].second);
  }
}

int64_t Weights::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : named()) count += tensor.numel();
  return count;
}

}  // namespace sluice::models
