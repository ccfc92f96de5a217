#pragma once

namespace sluice::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;          // while running; or what was saved is damaged
inline constexpr int kWrongUsage = 64;     // the command line
inline constexpr int kGivenUp = 75;        // the other ranks go on without this one
inline constexpr int kWrongPipeline = 78;  // the pipeline, a model folder, data, the run folder: nothing was run

/// Of a program that a signal ended: 130 for Ctrl-C, 143 for SIGTERM.
constexpr int exit_code_of_signal(int number) { return 128 + number; }

}  // namespace sluice::cli
