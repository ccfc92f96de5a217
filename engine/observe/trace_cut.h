#pragma once

#include <cstdint>
#include <filesystem>

#include "base/files/file_system.h"

namespace sluice::engine {

/// Takes out of a trace.json what iterations from `iterations` on have done, and what a crash has left half written, so that a
/// TraceWriter can go on with it. Returns the end of the last slice that stays, in nanoseconds; 0 where there is no trace. Reads
/// and writes line by line: memory does not grow with the trace. A crash leaves the old file or the new one. Throws UserError.
int64_t cut_trace(const std::filesystem::path& path, int64_t iterations, FileSystem& files);

}  // namespace sluice::engine
