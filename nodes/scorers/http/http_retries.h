#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/contract/world/metrics.h"
#include "nodes/scorers/http/http_client.h"

namespace sluice::nodes {

/// What is tried again of the requests for one micro-batch: the first time is told in a warning, since it may be long until a
/// request fails for good, and all are counted.
class HttpRetries {
 public:
  HttpRetries(std::string node, int64_t iteration) : node_(std::move(node)), iteration_(iteration) {}

  void note(const HttpRetry& retry);

  /// reward/NODE/retries, where there were any.
  void record(engine::MetricsRecorder& metrics) const;

 private:
  const std::string node_;
  const int64_t iteration_;
  size_t count_ = 0;
};

}  // namespace sluice::nodes
