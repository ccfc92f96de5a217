#pragma once

#include <cstdint>

#include "engine/observe/costs.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// Sets the random streams of simulated nodes apart from those of the real run.
constexpr uint64_t kSimulated = 0x6c656e67746873;

/// The most tokens of a sample of a path, by the contract of whatever makes it.
class SampleBounds {
 public:
  SampleBounds(const Plan& plan, const PlanPath& path);

  int64_t prompt() const;
  int64_t response(int64_t prompt) const;

 private:
  int64_t sample_ = 0;    // prompt and response
  int64_t response_ = 0;  // 0: what the prompt leaves
};

/// How long the prompts and responses of a path are, drawn from the lengths that were measured. What is drawn depends only on
/// the seed of the pipeline, path, iteration, group and sample. `plan` and `costs` outlive it.
class LengthDraws {
 public:
  LengthDraws(const Plan& plan, const PlanPath& path, const Costs& costs);

  int64_t prompt(int64_t iteration, int64_t group) const;
  int64_t response(int64_t iteration, int64_t group, int64_t sample, int64_t prompt) const;
  const SampleBounds& bounds() const { return bounds_; }

 private:
  double share(int64_t iteration, int64_t group, uint32_t sample) const;

  const Costs& costs_;
  const uint64_t seed_;
  const SampleBounds bounds_;
};

}  // namespace sluice::engine
