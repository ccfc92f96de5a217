#include "engine/contract/params/scheduled_number.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numbers>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::engine {
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
std::string rounded_text(double number) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", number);
  return real_text(std::strtod(text, nullptr));
}

// The part of the way from `from` to `to` that is left; both ends are exact, and rounding leads out of neither.
double between(double from, double to, double left) {
  const auto [low, high] = std::minmax(from, to);
  return std::clamp(from * left + to * (1 - left), low, high);
}

}  // namespace

double ValueSchedule::at(int64_t iteration) const {
  const bool warms = iteration < warmup;
  const double risen = share(iteration, warmup), gone = std::min(1.0, share(iteration - warmup, iterations - warmup));
  if (warms) return shape == ScheduleShape::kWsd ? between(from, to, risen) : from * risen;
  switch (shape) {
    case ScheduleShape::kConstant:
      return from;
    case ScheduleShape::kLinear:
      return between(from, to, 1 - gone);
    case ScheduleShape::kCosine:
      return between(from, to, half_cosine(gone));
    case ScheduleShape::kWsd: {
      const int64_t into_decay = iteration - (iterations - decay);
      if (into_decay < 0) return from;
      return between(from, to, fallen_to(decay_shape, std::min(1.0, share(into_decay, decay))));
    }
  }
  throw InternalError("unknown shape of a schedule");
}

double ValueSchedule::lowest() const {
  const double end = shape == ScheduleShape::kConstant ? from : std::min(from, to);
  return warmup > 0 && shape != ScheduleShape::kWsd ? std::min(end, 0.0) : end;
}

double ValueSchedule::highest() const {
  const double end = shape == ScheduleShape::kConstant ? from : std::max(from, to);
  return warmup > 0 && shape != ScheduleShape::kWsd ? std::max(end, 0.0) : end;
}

std::string ValueSchedule::text() const {
  if (!changes()) return {};
  std::string text = rounded_text(from);
  if (warmup > 0) text += ", warm-up of " + plural(warmup, "iteration");
  const std::string end = " to " + rounded_text(to);
  switch (shape) {
    case ScheduleShape::kConstant:
      return text;
    case ScheduleShape::kLinear:
      return text + ", straight" + end;
    case ScheduleShape::kCosine:
      return text + ", cosine" + end;
    case ScheduleShape::kWsd:
      return text + ", in the last " + plural(decay, "iteration") + end;
  }
  throw InternalError("unknown shape of a schedule");
}

int64_t iterations_of(double given, int64_t iterations) {
  return static_cast<int64_t>(given < 1 ? std::ceil(given * static_cast<double>(iterations)) : given);
}

std::string ScheduledNumber::text() const {
  const bool to_an_end = schedule_.shape != ScheduleShape::kConstant;
  return schedule_.text() + (to_an_end && !follows_run_ ? ", in " + plural(schedule_.iterations, "iteration") : "");
}

std::string ScheduledNumber::written() const { return written_.empty() ? real_text(schedule_.from) : written_; }

}  // namespace sluice::engine
