#pragma once

#include <cstdint>

namespace sluice::nodes {

/// The port between training and sampling: makes the live weights of a model a version that can be sampled from. Who trains
/// and who samples know nothing of how the weights get from one to the other. Of trained models only; `weight_publisher()` of
/// model_parts.h gives a node that of its model, which the model owns.
///
/// Called on the thread of the node that publishes, never while the weights are trained. Throws InternalError when versions do
/// not follow one another.
class WeightPublisher {
 public:
  WeightPublisher() = default;
  WeightPublisher(const WeightPublisher&) = delete;
  WeightPublisher& operator=(const WeightPublisher&) = delete;
  virtual ~WeightPublisher() = default;

  /// The live weights are `version` from now on, which is one more than the last, or any after restart(). When it returns, every
  /// sampler can read it.
  virtual void publish(int64_t version) = 0;

  /// Forgets all versions. Nobody samples meanwhile.
  virtual void restart() = 0;
};

}  // namespace sluice::nodes
