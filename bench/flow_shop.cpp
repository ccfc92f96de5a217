#include "bench/flow_shop.h"

#include <algorithm>

namespace sluice::bench {

double makespan(const Durations& durations, size_t in_flight) {
  Durations end(durations.size());
  for (size_t i = 0; i < durations.size(); ++i) {
    double ready = i >= in_flight ? end[i - in_flight][kStages - 1] : 0;
    for (size_t s = 0; s < kStages; ++s) {
      if (i > 0) ready = std::max(ready, end[i - 1][s]);
      ready += durations[i][s];
      end[i][s] = ready;
    }
  }
  return end.back()[kStages - 1];
}

}  // namespace sluice::bench
