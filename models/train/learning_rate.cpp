#include "models/train/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::models {
namespace {

double share(int64_t part, int64_t whole) { return static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, whole)); }

double half_cosine(double progress) { return 0.5 * (1 + std::cos(std::numbers::pi * progress)); }

double fallen_to(DecayShape shape, double progress) {
  switch (shape) {
    case DecayShape::kCosine:
      return half_cosine(progress);
    case DecayShape::kLinear:
      return 1 - progress;
    case DecayShape::kSqrt:
      return 1 - std::sqrt(progress);
  }
  throw InternalError("unknown shape of a decay");
}

// A tenth of 1e-5 is 1e-06, not 1.0000000000000002e-06.
std::string rounded_text(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", rate);
  return real_text(std::strtod(text, nullptr));
}

// `factor` from 0 to 1 becomes one from `minimum` to 1.
double above(double minimum, double factor) { return factor * (1 - minimum) + minimum; }

}  // namespace

double LearningRate::at(int64_t iteration) const {
  const bool warms = iteration < warmup;
  const double risen = share(iteration, warmup), fallen = share(iteration - warmup, iterations - warmup);
  switch (shape) {
    case LearningRateShape::kConstant:
      return highest * (warms ? risen : 1);
    case LearningRateShape::kLinear:
      return highest * (warms ? risen : above(minimum, std::max(0.0, 1 - fallen)));
    case LearningRateShape::kCosine:
      return highest * (warms ? risen : above(minimum, half_cosine(std::min(1.0, fallen))));
    case LearningRateShape::kWsd: {
      if (warms) return highest * above(minimum, risen);
      const int64_t into_decay = iteration - (iterations - decay);
      if (into_decay < 0) return highest;
      return highest * above(minimum, fallen_to(decay_shape, std::min(1.0, share(into_decay, decay))));
    }
  }
  throw InternalError("unknown shape of a learning rate");
}

std::string LearningRate::text() const {
  if (shape == LearningRateShape::kConstant && warmup == 0) return {};
  std::string text = rounded_text(highest);
  if (warmup > 0) text += ", warm-up of " + plural(warmup, "iteration");
  const std::string end = " to " + rounded_text(highest * minimum);
  switch (shape) {
    case LearningRateShape::kConstant:
      return text;
    case LearningRateShape::kLinear:
      return text + ", straight" + end;
    case LearningRateShape::kCosine:
      return text + ", cosine" + end;
    case LearningRateShape::kWsd:
      return text + ", in the last " + plural(decay, "iteration") + end;
  }
  throw InternalError("unknown shape of a learning rate");
}

int64_t iterations_of(double given, int64_t iterations) {
  return static_cast<int64_t>(given < 1 ? std::ceil(given * static_cast<double>(iterations)) : given);
}

}  // namespace sluice::models
