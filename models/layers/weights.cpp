#include "models/layers/weights.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>
#include <ATen/ops/clone.h>

#include <map>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "models/layers/adaptable_matrices.h"
#include "models/layers/weight_names.h"

namespace sluice::models {

std::vector<LinearWeights*> LayerWeights::linears() {
  std::vector<LinearWeights*> all{&query, &key, &value, &attention_output};
  for (LinearWeights& linear : feed_forward) all.push_back(&linear);
  return all;
}

std::vector<const LinearWeights*> LayerWeights::linears() const {
  std::vector<const LinearWeights*> all{&query, &key, &value, &attention_output};
  for (const LinearWeights& linear : feed_forward) all.push_back(&linear);
  return all;
}

std::vector<std::pair<std::string, at::Tensor>> Weights::named() const {
  std::vector<std::pair<std::string, at::Tensor>> result;
  for (const auto& [name, tensor] : weight_slots(*this)) {
    const bool repeated = tensor == &head && head.is_same(embedding);
    if (tensor->defined() && !repeated) result.emplace_back(name, *tensor);
  }
  Weights handles = *this;
  for (const AdaptableMatrix& matrix : adaptable_matrices(handles)) {
    if (!matrix.adapter->defined()) continue;
    result.emplace_back(factor_a_name(matrix.name), matrix.adapter->a);
    result.emplace_back(factor_b_name(matrix.name), matrix.adapter->b);
  }
  return result;
}

std::vector<std::pair<std::string, at::Tensor>> Weights::trainable() const {
  auto result = named();
  std::erase_if(result, [](const auto& weight) { return !weight.second.requires_grad(); });
  return result;
}

Weights Weights::with(const std::vector<std::pair<std::string, at::Tensor>>& tensors) const {
  Weights changed = *this;
  std::unordered_map<std::string, at::Tensor*> slots;
  for (const auto& [name, tensor] : weight_slots(changed)) slots[name] = tensor;
  for (const AdaptableMatrix& matrix : adaptable_matrices(changed)) {
    slots[factor_a_name(matrix.name)] = &matrix.adapter->a;
    slots[factor_b_name(matrix.name)] = &matrix.adapter->b;
  }
  for (const auto& [name, tensor] : tensors) {
    const auto slot = slots.find(name);
    SLUICE_CHECK(slot != slots.end() && slot->second->sizes() == tensor.sizes(), name);
    *slot->second = tensor;
  }
  if (head.defined() && head.is_same(embedding)) changed.head = changed.embedding;
  return changed;
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

Weights Weights::to(at::Device device) const {
  const at::NoGradGuard no_gradient;
  Weights moved = *this;
  for (const auto& [name, tensor] : weight_slots(moved)) {
    if (tensor->defined()) *tensor = tensor->detach().to(device);
  }
  if (head.defined() && head.is_same(embedding)) moved.head = moved.embedding;
  for (const AdaptableMatrix& matrix : adaptable_matrices(moved)) {
    if (!matrix.adapter->defined()) continue;
    matrix.adapter->a = matrix.adapter->a.detach().to(device);
    matrix.adapter->b = matrix.adapter->b.detach().to(device);
  }
  return moved;
}

void Weights::copy_from(const Weights& source) {
  const at::NoGradGuard no_gradient;
  const auto from = source.named(), to = named();
  SLUICE_CHECK(from.size() == to.size(), "weights of another architecture");
  // On a device a few kernels copy all tensors of a list, if they have one type and their copies have one.
  struct List {
    std::vector<at::Tensor> sources, targets;
  };
  std::map<std::pair<at::ScalarType, at::ScalarType>, List> lists;
  for (size_t i = 0; i < to.size(); ++i) {
    SLUICE_CHECK(from[i].first == to[i].first && from[i].second.sizes() == to[i].second.sizes(), to[i].first);
    List& list = lists[{from[i].second.scalar_type(), to[i].second.scalar_type()}];
    list.sources.push_back(from[i].second);
    list.targets.push_back(to[i].second);
  }
  for (const auto& [types, list] : lists) at::_foreach_copy_(list.targets, list.sources);
}

}  // namespace sluice::models
