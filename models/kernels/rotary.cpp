#include "models/kernels/rotary.h"

#include <ATen/ops/pow.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"

namespace sluice::models {
namespace {

using Floats = std::vector<float>;

// theta^(2i/dims), 0 <= i < dims/2. The last bit of LibTorch's power differs from std::pow's now and then, and position 100000
// makes an angle of it.
Floats wavelengths(const at::Tensor& theta, int64_t dims) {
  Floats exponents;
  for (int64_t i = 0; i < dims; i += 2) exponents.push_back(static_cast<float>(i) / static_cast<float>(dims));
  const at::Tensor powers = at::pow(theta, at::tensor(exponents));
  return Floats(powers.const_data_ptr<float>(), powers.const_data_ptr<float>() + powers.numel());
}

at::Tensor number(double value) { return at::tensor(static_cast<float>(value)); }

// The base that stretches the slowest angle of `length` positions to that of the longest sample trained on.
at::Tensor dynamic_theta(const RopeConfig& rope, int64_t dims, int64_t length) {
  if (length <= rope.original_positions) return number(rope.theta);
  const float ratio = static_cast<float>(rope.factor * static_cast<double>(length)) / static_cast<float>(rope.original_positions);
  const at::Tensor stretch = number(ratio - static_cast<float>(rope.factor - 1));
  const double exponent = static_cast<double>(dims) / static_cast<double>(dims - 2);
  return at::pow(stretch, exponent).mul(rope.theta);
}

Floats inverse(Floats lengths) {
  for (float& length : lengths) length = 1.0f / length;
  return lengths;
}

void scale_linear(const RopeConfig& rope, Floats& frequencies) {
  for (float& frequency : frequencies) frequency /= static_cast<float>(rope.factor);
}

// Long waves are stretched by the factor, short ones are not, those between by a share of it.
void scale_llama3(const RopeConfig& rope, Floats& frequencies) {
  const double positions = static_cast<double>(rope.original_positions);
  const auto longest = static_cast<float>(positions / rope.low_frequency_factor);
  const auto shortest = static_cast<float>(positions / rope.high_frequency_factor);
  const auto factor = static_cast<float>(rope.factor), low = static_cast<float>(rope.low_frequency_factor);
  const auto band = static_cast<float>(rope.high_frequency_factor - rope.low_frequency_factor);
  for (float& frequency : frequencies) {
    const float wavelength = 1.0f / frequency * static_cast<float>(2 * std::numbers::pi);
    if (wavelength < shortest) continue;
    if (wavelength > longest) {
      frequency /= factor;
      continue;
    }
    const float share = (1.0f / wavelength * static_cast<float>(positions) - low) / band;
    frequency = (1.0f - share) * frequency / factor + share * frequency;
  }
}

struct Ramp {
  double begin, end;
};

// The dimensions between which yarn goes over from angles as trained to angles stretched: those that turn beta_fast and beta_slow
// times within the longest sample trained on (Peng et al. 2023, "YaRN", eq. 17).
Ramp yarn_ramp(const RopeConfig& rope, int64_t dims) {
  const auto dimension_that_turns = [&](double times) {
    const double wave = static_cast<double>(rope.original_positions) / (times * 2 * std::numbers::pi);
    return static_cast<double>(dims) * std::log(wave) / (2 * std::log(rope.theta));
  };
  double begin = dimension_that_turns(rope.beta_fast), end = dimension_that_turns(rope.beta_slow);
  if (rope.truncate) begin = std::floor(begin), end = std::ceil(end);
  begin = std::max(begin, 0.0), end = std::min(end, static_cast<double>(dims - 1));
  return {begin, begin == end ? end + 0.001 : end};
}

Floats yarn_frequencies(const RopeConfig& rope, const Floats& lengths, int64_t dims) {
  const Ramp ramp = yarn_ramp(rope, dims);
  const auto begin = static_cast<float>(ramp.begin), width = static_cast<float>(ramp.end - ramp.begin);
  Floats frequencies;
  for (size_t i = 0; i < lengths.size(); ++i) {
    const float as_trained = 1.0f - std::clamp((static_cast<float>(i) - begin) / width, 0.0f, 1.0f);
    const float stretched = 1.0f / (static_cast<float>(rope.factor) * lengths[i]);
    frequencies.push_back(stretched * (1.0f - as_trained) + 1.0f / lengths[i] * as_trained);
  }
  return frequencies;
}

Floats longrope_frequencies(const RopeConfig& rope, Floats lengths, int64_t length) {
  const auto& factors = length > rope.original_positions ? rope.long_factors : rope.short_factors;
  SLUICE_CHECK(factors.size() == lengths.size(), "longrope has one factor for each angle");
  for (size_t i = 0; i < lengths.size(); ++i) lengths[i] *= static_cast<float>(factors[i]);
  return inverse(std::move(lengths));
}

// Radians that each pair of dimensions turns from one position to the next in a sample of `length` tokens.
Floats rotary_frequencies(const RopeConfig& rope, int64_t dims, int64_t length) {
  if (rope.scaling == RopeScaling::kDynamic) return inverse(wavelengths(dynamic_theta(rope, dims, length), dims));
  const Floats lengths = wavelengths(number(rope.theta), dims);
  if (rope.scaling == RopeScaling::kYarn) return yarn_frequencies(rope, lengths, dims);
  if (rope.scaling == RopeScaling::kLongrope) return longrope_frequencies(rope, lengths, length);
  Floats frequencies = inverse(lengths);
  if (rope.scaling == RopeScaling::kLinear) scale_linear(rope, frequencies);
  if (rope.scaling == RopeScaling::kLlama3) scale_llama3(rope, frequencies);
  return frequencies;
}

}  // namespace

RotaryTable::RotaryTable(const ModelConfig& config, int64_t length, int64_t which)
    : dims_(config.learned_positions ? 0 : config.rotary_dims(which)), positions_(length), neighbours_(config.rotary_neighbours) {
  SLUICE_CHECK(dims_ >= 0 && dims_ % 2 == 0 && length >= 0, "a rotary table needs an even number of dimensions");
  if (dims_ == 0) return;
  rows_.resize(static_cast<size_t>(dims_ * positions_));
  const int64_t half = dims_ / 2;
  const RopeConfig& rope = config.rope_at(which);
  const Floats frequencies = rotary_frequencies(rope, dims_, length);
  const auto scale = static_cast<float>(rope.attention_factor);
  for (int64_t position = 0; position < positions_; ++position) {
    float* row = rows_.data() + position * dims_;
    for (int64_t i = 0; i < half; ++i) {
      const float angle = static_cast<float>(position) * frequencies[static_cast<size_t>(i)];
      row[i] = std::cos(angle) * scale;
      row[half + i] = std::sin(angle) * scale;
    }
  }
}

void grow_rotary_tables(const ModelConfig& config, int64_t positions, std::vector<RotaryTable>& tables) {
  constexpr int64_t kFirst = 1024;
  const int64_t have = tables.empty() ? 0 : tables.front().positions();
  if (config.learned_positions || positions <= have) return;
  const int64_t length = std::min(config.steady_positions(), std::max({positions, 2 * have, kFirst}));
  tables.clear();
  for (int64_t which = 0; which < config.ropes(); ++which) tables.emplace_back(config, length, which);
}

}  // namespace sluice::models
