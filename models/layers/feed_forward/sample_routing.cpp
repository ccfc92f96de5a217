#include "models/layers/feed_forward/sample_routing.h"

#include <algorithm>
#include <cmath>

#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

// A share of 0 adds nothing.
double entropy_of(const float* shares, int64_t count) {
  double sum = 0;
  for (int64_t e = 0; e < count; ++e) {
    if (shares[e] > 0) sum -= shares[e] * static_cast<double>(std::log(shares[e]));
  }
  return sum;
}

// Experts of the same share are as likely.
bool is_rerouted(const float* shares, int64_t count, const int32_t* chosen, int64_t per_token) {
  float least = shares[chosen[0]], most_of_others = 0;
  for (int64_t k = 1; k < per_token; ++k) least = std::min(least, shares[chosen[k]]);
  for (int64_t e = 0; e < count; ++e) {
    if (!std::binary_search(chosen, chosen + per_token, static_cast<int32_t>(e)))
      most_of_others = std::max(most_of_others, shares[e]);
  }
  return most_of_others > least;
}

SampleRouting routing_of(const ExpertsConfig& experts, int64_t tokens, const int32_t* chosen, const float* shares) {
  const auto count = static_cast<size_t>(experts.count);
  SampleRouting sample{.tokens = tokens, .through = std::vector<int64_t>(count), .shares = std::vector<double>(count)};
  for (int64_t i = 0; i < tokens * experts.per_token; ++i) ++sample.through[static_cast<size_t>(chosen[i])];
  for (int64_t t = 0; t < tokens; ++t, shares += experts.count) {
    for (size_t e = 0; e < count; ++e) sample.shares[e] += shares[e];
    sample.entropy += entropy_of(shares, experts.count);
    sample.rerouted += is_rerouted(shares, experts.count, chosen + t * experts.per_token, experts.per_token) ? 1 : 0;
  }
  return sample;
}

// E / (K T), which the loss and its derivative have in common.
double scale_of(const ExpertsConfig& experts, const SampleRouting& sample) {
  return static_cast<double>(experts.count) / static_cast<double>(experts.per_token * sample.tokens);
}

}  // namespace

std::vector<SampleRouting> sample_routings(const ExpertsConfig& experts, std::span<const int64_t> offsets, const int32_t* chosen,
                                           const float* shares) {
  const auto samples = static_cast<int64_t>(offsets.size()) - 1;
  std::vector<SampleRouting> all(static_cast<size_t>(samples));
  parallel_ranges(samples, 1, [&](int64_t begin, int64_t end) {
    for (auto s = static_cast<size_t>(begin); s < static_cast<size_t>(end); ++s) {
      const int64_t first = offsets[s];
      all[s] = routing_of(experts, offsets[s + 1] - first, chosen + first * experts.per_token, shares + first * experts.count);
    }
  });
  return all;
}

double balance_loss(const ExpertsConfig& experts, const SampleRouting& sample) {
  if (sample.tokens == 0) return 0;
  double sum = 0;
  for (size_t e = 0; e < sample.through.size(); ++e) sum += static_cast<double>(sample.through[e]) * sample.shares[e];
  return scale_of(experts, sample) * sum / static_cast<double>(sample.tokens);
}

std::vector<float> balance_slopes(const ExpertsConfig& experts, const SampleRouting& sample, double factor) {
  std::vector<float> slopes(sample.through.size());
  if (sample.tokens == 0) return slopes;
  const double scale = factor * scale_of(experts, sample) / static_cast<double>(sample.tokens);
  for (size_t e = 0; e < slopes.size(); ++e) slopes[e] = static_cast<float>(scale * static_cast<double>(sample.through[e]));
  return slopes;
}

}  // namespace sluice::models
