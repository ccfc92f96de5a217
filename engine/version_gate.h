#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace sluice::engine {

/// Which policy version is published. Iteration i may start generating once version max(0, i - lag) is, and uses exactly that one; its
/// training starts from version i, so the trainer of iteration i waits until that is published. Thread-safe. A pipeline whose rollout
/// does not sample from a trained model has a gate that is always open for generation.
class VersionGate {
 public:
  /// `on_publish` is called on the publisher's thread.
  VersionGate(bool closes, int64_t lag, std::function<void()> on_publish)
      : closes_(closes), lag_(lag), on_publish_(std::move(on_publish)) {}

  int64_t version_for(int64_t iteration) const { return closes_ && iteration > lag_ ? iteration - lag_ : 0; }
  bool open_for(int64_t iteration) const { return published_.load() >= version_for(iteration); }

  /// Calls `action` once `version` is published: at once, or on the publisher's thread. Actions of one version run in order. An action
  /// must not call the gate.
  void when_published(int64_t version, std::function<void()> action);

  void publish(int64_t version);

 private:
  const bool closes_;
  const int64_t lag_;
  const std::function<void()> on_publish_;
  std::atomic<int64_t> published_{0};
  std::mutex mutex_;
  std::multimap<int64_t, std::function<void()>> waiting_;  // by version, in order of arrival
};

}  // namespace sluice::engine
