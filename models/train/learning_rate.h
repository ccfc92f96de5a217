#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace sluice::models {

/// How a learning rate goes on after its warm-up.
enum class LearningRateShape {
  kConstant,
  kLinear,  // straight to the minimum at the end of the run
  kCosine,  // half a cosine to it
  kWsd,     // warm-up, stable, decay: constant, and at last down to it
};
constexpr std::array<std::pair<LearningRateShape, const char*>, 4> enum_names(LearningRateShape) {
  return {{{LearningRateShape::kConstant, "constant"},
           {LearningRateShape::kLinear, "linear"},
           {LearningRateShape::kCosine, "cosine"},
           {LearningRateShape::kWsd, "wsd"}}};
}

/// Of wsd: half a cosine, a straight line, or 1 - sqrt(progress) (Haegele et al. 2024).
enum class DecayShape { kCosine, kLinear, kSqrt };
constexpr std::array<std::pair<DecayShape, const char*>, 3> enum_names(DecayShape) {
  return {{{DecayShape::kCosine, "cosine"}, {DecayShape::kLinear, "linear"}, {DecayShape::kSqrt, "1-sqrt"}}};
}

/// The learning rate of each iteration of a run: a pure function, so that a run which goes on needs nothing but the number of its
/// iteration. The numbers are those of the schedulers of transformers at a step of the same number:
/// get_constant_schedule_with_warmup, get_linear_schedule_with_warmup (with a minimum: get_polynomial_decay_schedule_with_warmup
/// of power 1), get_cosine_with_min_lr_schedule_with_warmup and get_wsd_schedule (Hu et al. 2024, MiniCPM, section 4).
struct LearningRate {
  LearningRateShape shape = LearningRateShape::kConstant;
  double highest = 0;
  double minimum = 0;      // share of `highest`, 0 to 1: where the decay ends
  int64_t iterations = 0;  // of the run
  int64_t warmup = 0;      // iterations; the first has a rate of 0, with wsd the minimum
  int64_t decay = 0;       // iterations of wsd's decay, the last of the run
  DecayShape decay_shape = DecayShape::kCosine;

  double at(int64_t iteration) const;

  /// "2e-04, warm-up of 3 iterations, cosine to 2e-05"; empty where it never changes.
  std::string text() const;
};

/// A number of iterations as people give it, of a run with `iterations`: below 1 a share of them, rounded up; else itself.
int64_t iterations_of(double given, int64_t iterations);

}  // namespace sluice::models
