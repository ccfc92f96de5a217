#pragma once

namespace sluice::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;           // while running
inline constexpr int kWrongUsage = 64;      // the command line
inline constexpr int kWrongPipeline = 78;   // the pipeline, a model folder, data: nothing was run
inline constexpr int kInterrupted = 130;

}  // namespace sluice::cli
