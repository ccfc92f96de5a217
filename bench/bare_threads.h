#pragma once

#include "bench/flow_shop.h"

namespace sluice::bench {

/// Seconds that four threads with a queue between each two, and nothing else, take to sleep these durations: what a pipeline of
/// sleeps can be on this machine as it is. At most `in_flight` micro-batches are between the first stage and the end of the last.
double bare_threads_seconds(const Durations& durations_ms, size_t in_flight);

}  // namespace sluice::bench
