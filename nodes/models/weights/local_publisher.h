#pragma once

#include "models/layers/weights.h"
#include "nodes/models/sampling/sampled_weights.h"
#include "nodes/models/weights/weight_publisher.h"

namespace sluice::nodes {

/// Publishes within this process: packs the live weights for the samplers that run here.
class LocalPublisher final : public WeightPublisher {
 public:
  /// Both must outlive this, and the tensors of `live` must stay the same ones.
  LocalPublisher(const models::Weights& live, SampledWeights& sampled) : live_(live), sampled_(sampled) {}

  void publish(int64_t version) override { sampled_.take(version, live_); }
  void restart() override { sampled_.forget(); }

 private:
  const models::Weights& live_;
  SampledWeights& sampled_;
};

}  // namespace sluice::nodes
