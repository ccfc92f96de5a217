#include "models/train/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "models/cuda/flat_step.h"
#include "models/kernels/parallel.h"
#include "models/portable/abilities.h"

namespace sluice::models {
namespace {

constexpr int64_t kWidenedAtOnce = int64_t{1} << 20;  // floats of a gradient on a device: 8 MB in double precision

// Who is alone has everything, in one range.
std::vector<FloatRange> owned_of(const std::vector<FloatRange>& buckets, const OptimizerShare& share) {
  if (share.owners == 1) return {{0, floats_of(buckets)}};
  return owned_floats(buckets, share.owner, share.owners);
}

FlatParameters flat_of(const AdamW::NamedTensors& weights, const OptimizerShare& share) {
  if (share.common) return FlatParameters(weights, share.common->weights);
  return FlatParameters(weights, share.slots, share.mine);
}

// Calls work(block) for the blocks of a range of the buffers, on all threads.
template <class Work>
void for_each_block(FloatRange range, const Work& work) {
  const int64_t first = range.begin / kFloatsOfABlock, last = (range.end + kFloatsOfABlock - 1) / kFloatsOfABlock;
  parallel_ranges(last - first, 1, [&](int64_t begin, int64_t end) {
    for (int64_t block = first + begin; block < first + end; ++block)
      work(FloatRange{std::max(range.begin, block * kFloatsOfABlock), std::min(range.end, (block + 1) * kFloatsOfABlock)});
  });
}

using BlockOfFloats = std::array<float, kFloatsOfABlock>;

}  // namespace

AdamW::AdamW(const NamedTensors& weights, const AdamWOptions& options, const OptimizerShare& share)
    : flat_(flat_of(weights, share)),
      sums_(share.common ? share.common->sums : nullptr),
      options_(options),
      alike_(alike_of(weights)),
      owners_(share.owners),
      buckets_(buckets_of(flat_.size(), share.floats_of_bucket)),
      owned_(owned_of(buckets_, share)),
      squares_(flat_.size()),
      first_moments_(at::zeros({floats_of(owned_)}, flat_.weight_buffer().options())),
      second_moments_(at::zeros_like(first_moments_)) {
  SLUICE_CHECK(!sums_ || flat_.on_host(), "what owners have in common is the host's");
}

// What lies between weights goes with the one before it.
std::vector<AdamW::Alike> AdamW::alike_of(const NamedTensors& weights) const {
  std::vector<std::string> names;
  for (const auto& [name, weight] : weights) names.push_back(name);
  for (size_t i = 0; i < options_.groups.size(); ++i) check_group(names, options_.groups, i);
  std::vector<Alike> each;
  const std::vector<FloatRange> ranges = flat_.ranges();
  for (size_t i = 0; i < names.size(); ++i) {
    Alike& one = each.emplace_back(Alike{.range = ranges[i]});
    if (ranges[i].begin >= flat_.vector_floats()) one.weight_decay = options_.weight_decay;
    const size_t group = group_of(names[i], options_.groups);
    if (group == options_.groups.size()) continue;
    one.learning_rate_scale = options_.groups[group].learning_rate_scale;
    one.weight_decay = options_.groups[group].weight_decay.value_or(one.weight_decay);
  }
  std::ranges::sort(each, {}, [](const Alike& one) { return one.range.begin; });
  std::vector<Alike> alike;
  for (const Alike& one : each) {
    const bool same = !alike.empty() && alike.back().learning_rate_scale == one.learning_rate_scale &&
                      alike.back().weight_decay == one.weight_decay;
    if (!alike.empty()) alike.back().range.end = one.range.begin;
    if (!same) alike.push_back(one);
  }
  alike.back().range.end = flat_.size();
  return alike;
}

double AdamW::gradient_norm(double scale) {
  flat_.check_gradients();
  if (!flat_.on_host() && owners_ == 1) return norm_on_device() * std::abs(scale);
  if (owners_ == 1 && !sums_) squares_.set_all(flat_.gradients(), flat_.size());
  return std::sqrt(squares_.total()) * std::abs(scale);
}

void AdamW::square_own_sums() {
  for (const FloatRange& owned : owned_) {
    for_each_block(owned, [&](FloatRange block) {
      BlockOfFloats sums;
      sums_->take(block, sums.data());
      squares_.set(block.begin, {sums.data(), static_cast<size_t>(block.size())});
    });
  }
}

void AdamW::clear_gradients() {
  flat_.clear_gradients();
  if (!sums_) return;
  for (const FloatRange& owned : owned_) sums_->clear(owned);
}

double AdamW::step(double scale) {
  const double norm = gradient_norm(scale);
  if (!std::isfinite(norm)) {
    clear_gradients();
    return norm;
  }
  ++steps_;
  const double clip = options_.clip_grad_norm > 0 ? std::min(1.0, options_.clip_grad_norm / (norm + 1e-6)) : 1.0;
  if (!flat_.on_host()) {
    step_on_device(scale * clip);
    return norm;
  }
  for_each_owned([&](const Alike& alike, FloatRange range, int64_t kept) {
    step_floats(range.begin, range.size(), kept, factors_of(alike, scale * clip));
  });
  if (sums_) clear_gradients();
  return norm;
}

AdamWFactors AdamW::factors_of(const Alike& alike, double gradient_scale) const {
  const auto count = static_cast<double>(steps_);
  const double learning_rate = options_.learning_rate * alike.learning_rate_scale;
  return {.gradient_scale = static_cast<float>(gradient_scale),
          .new_first = static_cast<float>(1 - options_.beta1),
          .new_second = static_cast<float>(1 - options_.beta2),
          .kept = static_cast<float>(1 - learning_rate * alike.weight_decay),
          .step_size = static_cast<float>(learning_rate / (1 - std::pow(options_.beta1, count))),
          .root_scale = static_cast<float>(1 / std::sqrt(1 - std::pow(options_.beta2, count))),
          .epsilon = static_cast<float>(options_.eps)};
}

// What of the ranges is owned, with where its moments begin.
template <class Work>
void AdamW::for_each_owned(const Work& work) const {
  for (const Alike& alike : alike_) {
    int64_t kept = 0;
    for (const FloatRange& owned : owned_) {
      const FloatRange both{std::max(alike.range.begin, owned.begin), std::min(alike.range.end, owned.end)};
      if (both.begin < both.end) work(alike, both, kept + both.begin - owned.begin);
      kept += owned.size();
    }
  }
}

void AdamW::step_floats(int64_t first, int64_t count, int64_t kept, const AdamWFactors& factors) {
  float *weights = flat_.weights(), *gradients = flat_.gradients();
  float *means = first_moments_.mutable_data_ptr<float>() + kept, *squares = second_moments_.mutable_data_ptr<float>() + kept;
  for_each_block({first, first + count}, [&](FloatRange block) {
    const int64_t begin = block.begin, kept_at = begin - first;
    BlockOfFloats sums;
    if (sums_) sums_->take(block, sums.data());
    float* const gradient = sums_ ? sums.data() : gradients + begin;
    adamw_step({weights + begin, gradient, means + kept_at, squares + kept_at, block.size()}, factors);
  });
}

// By our kernel where the device has it. The library widens what it sums up: a part at a time, so that there is never a second,
// wider gradient.
double AdamW::norm_on_device() const {
  const at::Tensor gradient = flat_.gradient_buffer();
  if (portable::has_own_operator(gradient.device(), "sluice::sum_of_squares"))
    return std::sqrt(own_sum_of_squares(gradient).item().toDouble());
  std::vector<at::Tensor> norms;
  for (int64_t first = 0; first < flat_.size(); first += kWidenedAtOnce) {
    const at::Tensor part = gradient.narrow(0, first, std::min(kWidenedAtOnce, flat_.size() - first));
    norms.push_back(at::linalg_vector_norm(part, 2, std::nullopt, false, at::kDouble));
  }
  return at::linalg_vector_norm(at::stack(norms)).item().toDouble();
}

void AdamW::write_matrices_to(const at::Tensor& matrices) {
  SLUICE_CHECK(!flat_.on_host() && owners_ == 1 && matrices.numel() == flat_.size() - flat_.vector_floats(),
               "matrices are written by who steps all of them, on a device");
  written_ = matrices;
}

// Undefined: none of it.
at::Tensor AdamW::written_part(FloatRange range) const {
  if (!written_.defined() || range.begin < flat_.vector_floats()) return {};
  return written_.narrow(0, range.begin - flat_.vector_floats(), range.size());
}

// Our kernel's step, which leaves zeros, or the library's, over the same ranges.
void AdamW::step_on_device(double gradient_scale) {
  const at::NoGradGuard no_gradient;
  const bool own = portable::has_own_operator(first_moments_.device(), "sluice::adamw_step");
  const at::Tensor count = own ? at::Tensor() : at::full({}, static_cast<double>(steps_), first_moments_.options());
  if (!own) flat_.gradient_buffer().mul_(gradient_scale);
  const auto step = [&](const Alike& alike, FloatRange range, int64_t kept) {
    const auto part = [&](const at::Tensor& buffer) { return buffer.narrow(0, range.begin, range.size()); };
    const auto moments = [&](const at::Tensor& buffer) { return buffer.narrow(0, kept, range.size()); };
    const at::Tensor weights = part(flat_.weight_buffer()), gradients = part(flat_.gradient_buffer());
    const at::Tensor first = moments(first_moments_), second = moments(second_moments_), written = written_part(range);
    if (own) return own_adamw_step(weights, gradients, first, second, written, factors_of(alike, gradient_scale));
    at::_fused_adamw_({weights}, {gradients}, {first}, {second}, {}, {count}, options_.learning_rate * alike.learning_rate_scale,
                      options_.beta1, options_.beta2, alike.weight_decay, options_.eps, /*amsgrad=*/false, /*maximize=*/false);
    if (written.defined()) written.copy_(weights);
  };
  const int64_t vectors = written_.defined() ? flat_.vector_floats() : 0;
  for_each_owned([&](const Alike& alike, FloatRange range, int64_t kept) {
    const int64_t border = std::clamp(vectors, range.begin, range.end);
    if (range.begin < border) step(alike, {range.begin, border}, kept);
    if (border < range.end) step(alike, {border, range.end}, kept + border - range.begin);
  });
  if (!own) clear_gradients();
}

}  // namespace sluice::models
