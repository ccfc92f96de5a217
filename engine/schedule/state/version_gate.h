#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "engine/schedule/state/milestone.h"

namespace sluice::engine {

/// Which version of a model is published. An iteration of a path begins once the version that it samples with is
/// (PlanPath::version_for). Thread-safe.
class VersionGate {
 public:
  /// `on_publish` is called on the publisher's thread.
  explicit VersionGate(std::function<void()> on_publish) : on_publish_(std::move(on_publish)) {}

  bool has(int64_t version) const { return published_.reached() >= version; }

  void publish(int64_t version) {
    published_.reach(version);
    on_publish_();
  }

  /// For trainers: the next step may only be made once the weights of the last one are published.
  Milestone& published() { return published_; }

 private:
  const std::function<void()> on_publish_;
  Milestone published_;
};

}  // namespace sluice::engine
