#pragma once

namespace sluice::engine {

struct RunState;

/// How a run has ended.
///
/// kCutShort: it cannot go on, as when no rank is left that samples; it has ended as an interrupted one does, and is saved.
/// kStalled: nothing got on for [runtime] stall_seconds. Some node may still be at work, see Run::execute.
enum class RunEnd { kDone, kInterrupted, kCutShort, kFailed, kStalled };

/// Of a run that has not failed.
RunEnd end_of(const RunState& state);

/// As status.json has it.
const char* state_text(RunEnd end);

}  // namespace sluice::engine
