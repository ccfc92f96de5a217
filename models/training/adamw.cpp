#include "models/training/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/error.h"
#include "base/strings.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kBlock = 1 << 14;  // elements summed by one thread: fixes the order of the additions

std::string shape_text(const at::Tensor& tensor) {
  std::vector<std::string> sizes;
  for (const int64_t size : tensor.sizes()) sizes.push_back(std::to_string(size));
  return "[" + join(sizes, ", ") + "]";
}

}  // namespace

AdamW::AdamW(const NamedTensors& weights, const AdamWOptions& options)
    : flat_(weights),
      options_(options),
      first_moments_(at::zeros({flat_.size()}, at::kFloat)),
      second_moments_(at::zeros({flat_.size()}, at::kFloat)) {}

double AdamW::gradient_norm(double scale) const {
  flat_.check_gradients();
  const float* values = flat_.gradients();
  const int64_t count = flat_.size();
  std::vector<double> blocks(static_cast<size_t>((count + kBlock - 1) / kBlock));
  parallel_ranges(static_cast<int64_t>(blocks.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) blocks[i] = sum_of_squares(values + i * kBlock, std::min(kBlock, count - i * kBlock));
  });
  double total = 0;
  for (const double block : blocks) total += block;
  return std::sqrt(total) * std::abs(scale);
}

double AdamW::step(double scale) {
  const double norm = gradient_norm(scale);
  if (!std::isfinite(norm)) {
    clear_gradients();
    return norm;
  }
  ++steps_;
  const double clip = options_.clip_grad_norm > 0 ? std::min(1.0, options_.clip_grad_norm / (norm + 1e-6)) : 1.0;
  const auto count = static_cast<double>(steps_);
  const AdamWFactors plain{.gradient_scale = static_cast<float>(scale * clip),
                           .new_first = static_cast<float>(1 - options_.beta1),
                           .new_second = static_cast<float>(1 - options_.beta2),
                           .kept = 1,
                           .step_size = static_cast<float>(options_.learning_rate / (1 - std::pow(options_.beta1, count))),
                           .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, count))),
                           .epsilon = static_cast<float>(options_.eps)};
  AdamWFactors decayed = plain;
  decayed.kept = static_cast<float>(1 - options_.learning_rate * options_.weight_decay);
  step_range(0, flat_.matrix_floats(), decayed);
  step_range(flat_.matrix_floats(), flat_.size() - flat_.matrix_floats(), plain);
  return norm;
}

void AdamW::step_range(int64_t first, int64_t count, const AdamWFactors& factors) {
  float *weights = flat_.weights() + first, *gradients = flat_.gradients() + first;
  float *means = first_moments_.mutable_data_ptr<float>() + first, *squares = second_moments_.mutable_data_ptr<float>() + first;
  parallel_ranges(count, kBlock, [&](int64_t begin, int64_t end) {
    adamw_step({weights + begin, gradients + begin, means + begin, squares + begin, end - begin}, factors);
  });
}

AdamW::NamedTensors AdamW::state() const {
  const NamedTensors first = flat_.views(first_moments_), second = flat_.views(second_moments_);
  NamedTensors state;
  for (size_t i = 0; i < first.size(); ++i) {
    state.emplace_back("exp_avg." + first[i].first, first[i].second);
    state.emplace_back("exp_avg_sq." + second[i].first, second[i].second);
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
