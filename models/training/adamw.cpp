#include "models/training/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/error.h"
#include "base/strings.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements summed by one thread: fixes the order of the additions

double sum_of_squares(const float* values, int64_t count) {
  constexpr int64_t kLanes = 8;  // independent running sums, so that the additions overlap
  double sums[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
  }
  for (; i < count; ++i) sums[0] += static_cast<double>(values[i]) * values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double sum_of_squares(const at::Tensor& gradient) {
  if (!gradient.is_cpu()) {
    const auto norm = at::linalg_vector_norm(gradient, 2, std::nullopt, false, at::kDouble).item().toDouble();
    return norm * norm;
  }
  const at::Tensor dense = gradient.contiguous();
  const float* values = dense.const_data_ptr<float>();
  const int64_t count = dense.numel();
  std::vector<double> blocks(static_cast<size_t>((count + kBlock - 1) / kBlock));
  parallel_ranges(static_cast<int64_t>(blocks.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) blocks[i] = sum_of_squares(values + i * kBlock, std::min(kBlock, count - i * kBlock));
  });
  double total = 0;
  for (const double block : blocks) total += block;
  return total;
}

// Norms and biases are vectors; everything else decays.
bool decays(const at::Tensor& weight) { return weight.dim() > 1; }

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

}  // namespace

double gradient_norm(std::span<const at::Tensor> weights, double scale) {
  double total = 0;
  for (const at::Tensor& weight : weights) {
    if (weight.grad().defined()) total += sum_of_squares(weight.grad());
  }
  return std::sqrt(total) * std::abs(scale);
}

AdamW::AdamW(NamedTensors weights, const AdamWOptions& options) : weights_(std::move(weights)), options_(options) {
  for (const auto& [name, weight] : weights_) {
    SLUICE_CHECK(weight.scalar_type() == at::kFloat && weight.is_contiguous(), name);
    first_moments_.push_back(at::zeros_like(weight.detach()));
    second_moments_.push_back(at::zeros_like(weight.detach()));
  }
}

double AdamW::step(double scale) {
  const at::NoGradGuard no_gradient;
  std::vector<at::Tensor> all;
  for (const auto& [name, weight] : weights_) all.push_back(weight);
  const double norm = gradient_norm(all, scale);
  if (!std::isfinite(norm)) {
    clear_gradients();
    return norm;
  }
  const double clip = options_.clip_grad_norm > 0 ? std::min(1.0, options_.clip_grad_norm / (norm + 1e-6)) : 1.0;
  const at::Tensor count = at::full({}, static_cast<double>(++steps_), all.front().options().requires_grad(false));
  for (const bool decayed : {true, false}) {
    std::vector<at::Tensor> values, gradients, first, second;
    for (size_t i = 0; i < all.size(); ++i) {
      if (decays(all[i]) != decayed || !all[i].grad().defined()) continue;
      values.push_back(all[i]);
      gradients.push_back(all[i].grad().mul_(scale * clip));
      first.push_back(first_moments_[i]);
      second.push_back(second_moments_[i]);
    }
    if (values.empty()) continue;
    const std::vector<at::Tensor> counts(values.size(), count);
    at::_fused_adamw_(values, gradients, first, second, {}, counts, options_.learning_rate, options_.beta1, options_.beta2,
                      decayed ? options_.weight_decay : 0.0, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
  }
  clear_gradients();
  return norm;
}

void AdamW::clear_gradients() {
  for (const auto& [name, weight] : weights_) weight.mutable_grad().reset();
}

AdamW::NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t i = 0; i < weights_.size(); ++i) {
    state.emplace_back("exp_avg." + weights_[i].first, first_moments_[i]);
    state.emplace_back("exp_avg_sq." + weights_[i].first, second_moments_[i]);
  }
  return state;
}

void AdamW::load_state(const NamedTensors& state, int64_t steps) {
  const at::NoGradGuard no_gradient;
  std::unordered_map<std::string, at::Tensor> by_name(state.begin(), state.end());
  for (const auto& [name, tensor] : this->state()) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw UserError("optimizer state: tensor " + sluice::quoted(name) + " is missing");
    if (found->second.sizes() != tensor.sizes()) {
      throw UserError("optimizer state: tensor " + sluice::quoted(name) + " has shape " + shape_text(found->second) +
                      "; the model's is " + shape_text(tensor));
    }
    tensor.copy_(found->second);
  }
  steps_ = steps;
}

}  // namespace sluice::models
