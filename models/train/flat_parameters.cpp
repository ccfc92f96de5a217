#include "models/train/flat_parameters.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros_like.h>

#include "base/error.h"

namespace sluice::models {
namespace {

constexpr int64_t kLine = 16;  // floats of a cache line

int64_t padded(int64_t size) { return (size + kLine - 1) / kLine * kLine; }

bool is_matrix(const at::Tensor& weight) { return weight.dim() > 1; }

}  // namespace

FlatParameters::FlatParameters(const NamedTensors& weights) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, weight] : weights) {
    SLUICE_CHECK(weight.scalar_type() == at::kFloat && weight.is_contiguous() && weight.requires_grad() && weight.is_leaf(),
                 name);
    slots_.push_back({name, weight, 0});
  }
  int64_t next = 0;
  for (const bool matrices : {true, false}) {
    for (Slot& slot : slots_) {
      if (is_matrix(slot.weight) != matrices) continue;
      slot.first = next;
      next += padded(slot.weight.numel());
    }
    if (matrices) matrix_floats_ = next;
  }
  // Each weight gives its old memory back as it moves, and only then gradients take theirs.
  SLUICE_CHECK(!slots_.empty(), "nothing is trained");
  const at::Device device = slots_.front().weight.device();
  weights_ = at::empty({next}, at::TensorOptions(at::kFloat).device(device));
  const auto views_of_weights = views(weights_);
  for (size_t i = 0; i < slots_.size(); ++i) {
    at::Tensor& weight = slots_[i].weight;
    const int64_t size = weight.numel();
    views_of_weights[i].second.copy_(weight);
    weights_.narrow(0, slots_[i].first + size, padded(size) - size).zero_();
    weight.set_data(views_of_weights[i].second);
  }
  gradients_ = at::zeros_like(weights_);
  const auto views_of_gradients = views(gradients_);
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].weight.mutable_grad() = views_of_gradients[i].second;
}

int64_t FlatParameters::floats(const std::vector<int64_t>& sizes) {
  int64_t total = 0;
  for (const int64_t size : sizes) total += padded(size);
  return total;
}

void FlatParameters::check_gradients() const {
  const auto* first = static_cast<const float*>(gradients_.const_data_ptr());
  for (const Slot& slot : slots_) {
    const at::Tensor& gradient = slot.weight.grad();
    SLUICE_CHECK(gradient.defined() && gradient.const_data_ptr() == first + slot.first,
                 "the gradient of " + slot.name + " was replaced instead of added to");
  }
}

void FlatParameters::clear_gradients() { gradients_.zero_(); }

NamedTensors FlatParameters::views(const at::Tensor& buffer) const {
  NamedTensors result;
  for (const Slot& slot : slots_) {
    result.emplace_back(slot.name, buffer.narrow(0, slot.first, slot.weight.numel()).view(slot.weight.sizes()));
  }
  return result;
}

}  // namespace sluice::models
