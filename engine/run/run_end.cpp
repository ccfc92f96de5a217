#include "engine/run/run_end.h"

#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

RunEnd end_of(const RunState& state) {
  if (!state.ends_early()) return RunEnd::kDone;
  const bool is_short = state.log.reported() < state.iterations;  // else all was done that was to be done still
  return state.cut_short.failed() && is_short ? RunEnd::kCutShort : RunEnd::kInterrupted;
}

const char* state_text(RunEnd end) {
  switch (end) {
    case RunEnd::kDone:
      return "done";
    case RunEnd::kInterrupted:
      return "interrupted";
    case RunEnd::kCutShort:
    case RunEnd::kFailed:
      return "failed";
    case RunEnd::kStalled:
      return "stalled";
  }
  return "?";
}

}  // namespace sluice::engine
