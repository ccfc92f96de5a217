#include "engine/observe/version_arrivals.h"

#include <algorithm>
#include <limits>

#include "engine/observe/engine_metrics.h"

namespace sluice::engine {

void VersionArrivals::await(int64_t version, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  awaited_ns_.try_emplace(version, now_ns);
}

// Clocks of ranks differ, so when the version was published is told from how long that took.
void VersionArrivals::opened(const PublishedVersion& version, int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  Arrival& arrival = arrivals_[version.version];
  arrival.bytes += version.bytes;
  if (version.published_seconds > arrival.slowest.published_seconds) arrival.slowest = version;
  const auto awaited = awaited_ns_.find(version.version);
  if (awaited == awaited_ns_.end()) return;
  const auto published_ns = static_cast<int64_t>(version.published_seconds * 1e9);
  const int64_t since = std::max(awaited->second, now_ns - published_ns);
  arrival.stall_ns = std::max({arrival.stall_ns, int64_t{0}, now_ns - since});
}

VersionArrivals::Rows VersionArrivals::take(int64_t version) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Rows rows{.of_rank = {{metrics::kWeightsStallSeconds, kNone}, {metrics::kWeightsLinkShare, kNone}},
            .of_run = {{metrics::kWeightsSeconds, kNone},
                       {metrics::kWeightsRate, kNone},
                       {metrics::kWeightsSlowestSeconds, kNone},
                       {metrics::kWeightsBytes, kNone},
                       {metrics::kWeightsSlowest, kNone}}};
  const std::lock_guard lock(mutex_);
  const auto found = arrivals_.find(version);
  if (found != arrivals_.end()) {
    const Arrival& arrival = found->second;
    const PublishedVersion& slowest = arrival.slowest;
    const double bytes = static_cast<double>(arrival.bytes), seconds = slowest.published_seconds;
    const bool is_measured = seconds > 0, has_link = is_measured && slowest.link_bytes_per_second > 0;
    const double wire_seconds = static_cast<double>(slowest.bytes_received) / slowest.link_bytes_per_second;
    rows.of_rank[0].second = static_cast<double>(arrival.stall_ns) * 1e-9;
    // A link that was measured when a version came slower is at least as fast as this one came.
    if (has_link) rows.of_rank[1].second = std::min(1.0, wire_seconds / seconds);
    const double of_run[] = {seconds, is_measured ? bytes / seconds * 1e-9 : kNone, slowest.slowest_seconds, bytes,
                             static_cast<double>(slowest.slowest_receiver)};
    for (size_t i = 0; i < rows.of_run.size(); ++i) rows.of_run[i].second = of_run[i];
  }
  arrivals_.erase(arrivals_.begin(), arrivals_.upper_bound(version));
  awaited_ns_.erase(awaited_ns_.begin(), awaited_ns_.upper_bound(version));
  return rows;
}

}  // namespace sluice::engine
