#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "nodes/rollout/environments/environment.h"
#include "nodes/rollout/environments/tool_source.h"

namespace sluice::nodes {

/// Calls that tool servers did not answer. A model may cause some, as with code that never ends, so a few are its affair; a
/// server that answers nothing any more would only teach it not to call. Thread-safe: all workers tell the same one.
class ServerBreakdowns {
 public:
  /// `most`: calls of one server, one after the other, without an answer that end the run; 0: none do.
  explicit ServerBreakdowns(int64_t most) : most_(most) {}

  /// Takes note of the answer to a call in `turn`. The 1st, 2nd, 4th, 8th ... breakdown of a server is told in a warning. Throws
  /// UserError where there are too many.
  void note(const ToolAnswer& answer, const Turn& turn);

 private:
  struct Count {
    int64_t all = 0;
    int64_t in_a_row = 0;
  };

  Count counted(size_t server, bool has_broken_down);

  const int64_t most_;
  std::mutex mutex_;  // guards what follows
  std::map<size_t, Count> counts_;
};

}  // namespace sluice::nodes
