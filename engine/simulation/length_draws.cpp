#include "engine/simulation/length_draws.h"

#include <algorithm>
#include <limits>

#include "base/numbers/random.h"

namespace sluice::engine {
namespace {

constexpr uint32_t kOfGroup = std::numeric_limits<uint32_t>::max();  // instead of the index of a sample

}  // namespace

// The least credit of a sample is a prompt of one token and the longest response, where the response has a bound of its own.
SampleBounds::SampleBounds(const Plan& plan, const PlanPath& path)
    : sample_(plan.maker_of(path).needs.worst_sample_tokens), response_(plan.maker_of(path).needs.least_sample_tokens - 1) {}

int64_t SampleBounds::prompt() const { return std::max<int64_t>(1, sample_ - std::max<int64_t>(1, response_)); }

int64_t SampleBounds::response(int64_t prompt) const {
  return response_ > 0 ? response_ : std::max<int64_t>(0, sample_ - prompt);
}

LengthDraws::LengthDraws(const Plan& plan, const PlanPath& path, const Costs& costs)
    : costs_(costs),
      seed_((static_cast<uint64_t>(plan.pipeline.seed) ^ kSimulated) + static_cast<uint64_t>(&path - plan.paths.data())),
      bounds_(plan, path) {}

int64_t LengthDraws::prompt(int64_t iteration, int64_t group) const {
  return std::clamp<int64_t>(costs_.lengths_of(iteration).prompt.at(share(iteration, group, kOfGroup)), 1, bounds_.prompt());
}

int64_t LengthDraws::response(int64_t iteration, int64_t group, int64_t sample, int64_t prompt) const {
  const double u = share(iteration, group, static_cast<uint32_t>(sample));
  return std::min(costs_.lengths_of(iteration).response.at(u), bounds_.response(prompt));
}

double LengthDraws::share(int64_t iteration, int64_t group, uint32_t sample) const {
  return RandomStream(seed_, static_cast<uint64_t>(iteration), static_cast<uint32_t>(group), sample).uniform();
}

}  // namespace sluice::engine
