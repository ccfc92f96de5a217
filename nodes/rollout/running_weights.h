#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/contract/settings.h"
#include "models/sample/packed_weights.h"
#include "nodes/models/sampling/sampled_weights.h"

namespace sluice::nodes {

/// Of a response: from that token on it was sampled with this version.
struct VersionRun {
  size_t begin = 0;
  int64_t version = 0;
};

/// The next run, after the tokens that there are.
void add_version(std::vector<VersionRun>& runs, size_t tokens, int64_t version);

/// The version that sampled a token.
int64_t version_of(const std::vector<VersionRun>& runs, size_t token);

/// The weights that a rollout's steps sample with: those of the iteration's version, or with `update = "immediately"` the newest
/// that there are when a step begins. Belongs to the rollout. While weights are in use their memory is not taken for another
/// version.
class RunningWeights {
 public:
  RunningWeights(std::shared_ptr<const SampledWeights> sampled, engine::WeightUpdate update)
      : sampled_(std::move(sampled)), update_(update) {}

  void begin_iteration(int64_t version);

  /// A step begins. True: with other weights than the last one of the iteration.
  bool begin_step();

  /// The step is done: until the next one the memory may be taken.
  void end_step();

  const models::PackedWeights& weights() const { return *weights_; }
  int64_t version() const { return version_; }
  bool is_set() const { return version_ >= 0; }
  bool may_change() const { return update_ == engine::WeightUpdate::kImmediately; }

 private:
  const std::shared_ptr<const SampledWeights> sampled_;
  const engine::WeightUpdate update_;
  SampledWeights::Lease lease_;
  const models::PackedWeights* weights_ = nullptr;
  int64_t version_ = -1;  // -1: no iteration has begun
};

}  // namespace sluice::nodes
