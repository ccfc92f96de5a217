#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/layers/sampling.h"
#include "models/memory/grown_buffer.h"

namespace sluice::models {

/// Draws token ids from rows of logits. Equal logits are ordered by id, lowest first; sums are taken in double. What is drawn
/// depends on nothing but the draw and its row. Log-probabilities have the bits that action_logprobs() computes from the same
/// logits. Not thread-safe.
///
/// Owns scratch memory for each thread, which grows to the vocabulary; allocates nothing after that.
class Sampler {
 public:
  /// Of rows of `vocabulary` logits. Throws UserError naming the option that is out of range.
  Sampler(const SamplingOptions& options, int64_t vocabulary);

  /// Of what is drawn from now on. Throws as above.
  void set_options(const SamplingOptions& options);

  /// tokens[i] for draws[i], split over ATen's threads. Throws UserError "sample ID: logits are not finite" for the first whose
  /// row holds a NaN or an infinity: the model has diverged.
  ///
  /// logits  [R,V]
  void sample(std::span<const float> logits, std::span<const TokenDraw> draws, std::span<SampledToken> tokens);

 private:
  struct Scratch {
    GrownBuffer<float> penalized, weights;  // [V]
    GrownBuffer<double> totals;             // of runs of weights
    GrownBuffer<int32_t> ids;               // [V]
    std::vector<int32_t> counts;            // [V], zero between rows
  };

  struct Softened {  // a row as weights of a softmax
    std::span<const float> logits;
    float top = 0;     // the largest logit
    double total = 0;  // of all weights; those of each run are in the scratch
  };

  SampledToken draw(const TokenDraw& draw, std::span<const float> logits, Scratch& scratch) const;
  std::span<const float> penalized(const TokenDraw& draw, std::span<const float> logits, Scratch& scratch) const;
  Softened soften(std::span<const float> logits, float top, Scratch& scratch) const;
  SampledToken with_logprob(int64_t id, std::span<const float> logits) const;
  int64_t draw_id(std::span<const float> logits, float top, const TokenDraw& draw, Scratch& scratch) const;
  int64_t draw_from_all(const Softened& row, Scratch& scratch, double uniform) const;
  int64_t draw_from_likeliest(const Softened& row, Scratch& scratch, double uniform) const;
  double temperature() const { return options_.temperature == 0 ? 1.0 : options_.temperature; }
  float scale() const { return static_cast<float>(1.0 / temperature()); }

  SamplingOptions options_;
  size_t vocabulary_;
  std::vector<Scratch> scratch_;  // one for each thread
};

}  // namespace sluice::models
