#pragma once

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "tests/nodes/objectives/objective_support.h"

/// Samples of any content, and micro-batches of them.
namespace sluice::nodes::testing {

/// The columns of one sample, an entry an action.
struct RandomSample {
  Vector logprobs, old_logprobs, rollout_logprobs, reference_logprobs, entropy, advantages, mask, draws;
};

inline RandomSample random_sample(std::mt19937& random, size_t actions) {
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> third(0, 2);
  RandomSample sample;
  for (size_t i = 0; i < actions; ++i) {
    sample.logprobs.push_back(-1.5 + 0.3 * normal(random));
    sample.old_logprobs.push_back(sample.logprobs.back() + 0.3 * normal(random));
    sample.rollout_logprobs.push_back(sample.old_logprobs.back() + 0.5 * normal(random));
    sample.reference_logprobs.push_back(sample.logprobs.back() + 0.5 * normal(random));
    sample.entropy.push_back(std::abs(normal(random)));
    sample.advantages.push_back(normal(random));
    sample.mask.push_back(third(random) * 0.5);  // 0, 0.5 or 1
    sample.draws.push_back(static_cast<double>(random()));
  }
  return sample;
}

/// Of 0 to 6 actions each.
inline std::vector<RandomSample> random_samples(std::mt19937& random, size_t count) {
  std::vector<RandomSample> samples;
  for (size_t i = 0; i < count; ++i)
    samples.push_back(random_sample(random, std::uniform_int_distribution<size_t>(0, 6)(random)));
  return samples;
}

/// The samples `order` of `samples` as one micro-batch; logprobs[A] and entropy[A] carry a gradient.
inline ObjectiveInputs packed(const std::vector<RandomSample>& samples, const std::vector<size_t>& order,
                              at::ScalarType type = at::kDouble) {
  const auto column = [&](Vector RandomSample::*member) {
    Vector all;
    for (const size_t s : order) all.insert(all.end(), (samples[s].*member).begin(), (samples[s].*member).end());
    return member == &RandomSample::draws ? tensor(all) : tensor(all).to(type);  // 32 bits are too many for a float
  };
  std::vector<int64_t> offsets{0};
  for (const size_t s : order) offsets.push_back(offsets.back() + static_cast<int64_t>(samples[s].logprobs.size()));
  const at::Tensor draws = column(&RandomSample::draws).to(at::kLong);  // samples of a file have none
  return {.logprobs = column(&RandomSample::logprobs).requires_grad_(true),
          .old_logprobs = column(&RandomSample::old_logprobs),
          .rollout_logprobs = column(&RandomSample::rollout_logprobs),
          .reference_logprobs = column(&RandomSample::reference_logprobs),
          .entropy = column(&RandomSample::entropy).requires_grad_(true),
          .advantages = column(&RandomSample::advantages),
          .mask = column(&RandomSample::mask),
          .action_offsets = offsets,
          .iteration = 0,
          .draws = draws.numel() == offsets.back() ? draws : at::Tensor()};
}

/// What the objective finds in a step of these samples, each by itself.
inline std::vector<double> found_in(const Objective& objective, const std::vector<RandomSample>& samples, at::ScalarType type) {
  std::vector<ObjectiveInputs> step;
  for (size_t s = 0; s < samples.size(); ++s) step.push_back(packed(samples, {s}, type));
  return found_in_step(objective, std::move(step));
}

}  // namespace sluice::nodes::testing
