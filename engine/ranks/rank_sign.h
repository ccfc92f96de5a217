#pragma once

#include <cstdint>
#include <string>

namespace sluice::engine {

/// What a rank shows of itself once a second: to the others if it is lost, and to whoever watches the run. A plain value.
struct RankSign {
  std::string doing;  // in some words: "in 'generate', iteration 7"
  int64_t iterations_done = 0;
  int64_t tokens_in_flight = 0;
  int64_t resident_bytes = 0;
  bool interrupted = false;   // it was asked to end, and has no other way to tell
  int64_t save_requests = 0;  // how often it was asked to save the run, which is for rank 0 to do
};

/// A rank as another one sees it. A plain value.
struct RankSeen {
  int rank = 0;
  std::string host;
  int64_t pid = 0;
  RankSign last;              // its last sign
  double silent_seconds = 0;  // since that came
};

}  // namespace sluice::engine
