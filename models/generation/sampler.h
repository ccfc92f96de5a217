#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/random.h"

namespace sluice::models {

struct SamplingOptions {
  double temperature = 1.0;  // >= 0; 0 takes the likeliest token
  int64_t top_k = 0;         // keep the k likeliest; 0 keeps all
  double top_p = 1.0;        // then keep the fewest likeliest whose share of what is left reaches top_p; 1 keeps all
};

struct SampledToken {
  int64_t id = 0;

  /// Natural log of the token's probability in softmax(logits / temperature) over the whole vocabulary: the temperature counts,
  /// top_k and top_p do not. That is what the training side computes for the same token at the same temperature. With
  /// temperature 0 it is the log-probability at temperature 1.
  float logprob = 0;
};

/// Draws token ids from rows of logits. Equal logits are ordered by id, lowest first; sums are taken in double. Not thread-safe
/// (it owns scratch memory); a draw depends on nothing but its row and its stream, of which it takes one uniform() (none when
/// greedy).
class Sampler {
 public:
  /// Throws UserError naming the option that is out of range.
  explicit Sampler(const SamplingOptions& options);

  /// Throws UserError "logits are not finite" when the row holds a NaN or an infinity: the model has diverged.
  SampledToken sample(std::span<const float> logits, RandomStream& stream);

 private:
  int64_t draw(double total, RandomStream& stream) const;
  int64_t draw_truncated(std::span<const float> logits, double total, RandomStream& stream);

  SamplingOptions options_;
  std::vector<float> weights_;          // e^((logit - max) / temperature) of the row at hand
  std::vector<double> partial_totals_;  // of runs of weights_
  std::vector<int32_t> heap_, kept_;
};

}  // namespace sluice::models
