#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/config/config.h"

namespace sluice::models {

/// How the router of one layer has spread the tokens of one sample over the experts, and how sure it was. E experts, K of them
/// for each token. A value.
struct SampleRouting {
  int64_t tokens = 0;            // T
  int64_t rerouted = 0;          // of these, those that do not go through their likeliest experts: another router chose
  std::vector<int64_t> through;  // [E] tokens that go through each expert: T K in all
  std::vector<double> shares;    // [E] sums of the router's softmax over the tokens: T in all
  double entropy = 0;            // sum over the tokens of that of the softmax, in nats
};

/// Of each sample; what is said of one depends on its own tokens alone, for any number of threads.
///
/// offsets  [S+1] into the tokens
/// chosen   [T,K] experts of each token
/// shares   [T,E] softmax of the router
std::vector<SampleRouting> sample_routings(const ExpertsConfig& experts, std::span<const int64_t> offsets, const int32_t* chosen,
                                           const float* shares);

/// The load-balancing loss of one sample in one layer, E / (K T) sum_e f_e p_e: f_e tokens go through expert e, and p_e is the
/// mean of its share. It is 1 where tokens are spread evenly, and at most E / K. 0 without tokens.
///
/// Source: DeepSeek-V3 (arXiv 2412.19437), section 2.1.2, equations 17 to 20, without the factor; a softmax needs no equation
/// 19. load_balancing_loss_func of transformers is K times that, of all samples and layers taken together.
double balance_loss(const ExpertsConfig& experts, const SampleRouting& sample);

/// The derivative of it with respect to the share that any token of the sample gives each expert: [E]. The choice has none.
std::vector<float> balance_slopes(const ExpertsConfig& experts, const SampleRouting& sample, double factor);

}  // namespace sluice::models
