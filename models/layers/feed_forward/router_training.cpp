#include "models/layers/feed_forward/router_training.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::models {

std::vector<std::vector<float>> RouterTraining::add(const ExpertsConfig& experts, int64_t layer,
                                                    std::span<const SampleRouting> samples) {
  SLUICE_CHECK(counted_.empty() || counted_.size() == samples.size(), "a pass has other samples than its routers were told of");
  const auto first = static_cast<size_t>(layer * experts.count);
  record_.through.resize(std::max(record_.through.size(), first + static_cast<size_t>(experts.count)));
  std::vector<std::vector<float>> slopes;
  for (size_t s = 0; s < samples.size(); ++s) {
    const SampleRouting& sample = samples[s];
    if (aux_loss_ > 0) slopes.push_back(balance_slopes(experts, sample, aux_loss_ * (counted_.empty() ? 1 : counted_[s])));
    if (sample.tokens == 0) continue;
    for (size_t e = 0; e < sample.through.size(); ++e) record_.through[first + e] += sample.through[e];
    record_.samples.push_back({.tokens = sample.tokens,
                               .rerouted = sample.rerouted,
                               .counted = counted_.empty() ? 1 : counted_[s],
                               .entropy = sample.entropy / static_cast<double>(sample.tokens),
                               .loss = balance_loss(experts, sample)});
  }
  return slopes;
}

RouterRecord RouterTraining::take() { return std::exchange(record_, {}); }

}  // namespace sluice::models
