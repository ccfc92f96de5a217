#include "nodes/scorers/http/http_retries.h"

#include "base/log.h"
#include "base/text/strings.h"

namespace sluice::nodes {

void HttpRetries::note(const HttpRetry& retry) {
  if (count_++ > 0) return;
  const double seconds = std::chrono::duration<double>(retry.pause).count();
  log_warning("node '" + node_ + "', iteration " + std::to_string(iteration_) + ": " + retry.failure + "; this was attempt " +
              std::to_string(retry.attempt) + ", up to " + std::to_string(retry.left) + " more follow, the next in " +
              human_seconds(seconds));
}

void HttpRetries::record(engine::MetricsRecorder& metrics) const {
  if (count_ > 0) metrics.sum("reward/" + node_ + "/retries", static_cast<double>(count_));
}

}  // namespace sluice::nodes
