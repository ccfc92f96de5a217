#pragma once

#include <cstdint>
#include <functional>

#include "engine/schedule/milestone.h"

namespace sluice::engine {

/// Which policy version is published. Iteration i may start generating once version max(0, i - lag) is, and uses exactly that one.
/// Thread-safe. A pipeline whose rollout does not sample from a trained model has a gate that is always open.
class VersionGate {
 public:
  /// `on_publish` is called on the publisher's thread.
  VersionGate(bool closes, int64_t lag, std::function<void()> on_publish)
      : closes_(closes), lag_(lag), on_publish_(std::move(on_publish)) {}

  /// How many versions older than the trainer the sampling weights of an iteration are; 0 when nothing samples from a trained model.
  int64_t lag_of(int64_t iteration) const { return closes_ ? iteration - version_for(iteration) : 0; }

  int64_t version_for(int64_t iteration) const { return closes_ && iteration > lag_ ? iteration - lag_ : 0; }
  bool open_for(int64_t iteration) const { return published_.reached() >= version_for(iteration); }

  void publish(int64_t version) {
    published_.reach(version);
    on_publish_();
  }

  /// For trainers: the next step may only be made once the weights of the last one are published.
  Milestone& published() { return published_; }

 private:
  const bool closes_;
  const int64_t lag_;
  const std::function<void()> on_publish_;
  Milestone published_;
};

}  // namespace sluice::engine
