#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/files/file.h"
#include "base/files/file_system.h"
#include "engine/contract/gathered_files.h"

namespace sluice::engine {

// Names that a run gives to its own files, in its folder.
inline constexpr const char* kPipelineFile = "pipeline.toml";
inline constexpr const char* kPipelineGraphFile = "pipeline.dot";
inline constexpr const char* kMetricsFile = "metrics.jsonl";
inline constexpr const char* kTraceFile = "trace.json";
inline constexpr const char* kStatusFile = "status.json";
inline constexpr const char* kCostsFile = "costs.json";
inline constexpr const char* kMemoryFile = "memory.json";
inline constexpr const char* kPluginsFile = "plugins.json";
inline constexpr const char* kAcceptedChangesFile = "accepted_changes.json";
inline constexpr const char* kInputsFile = "inputs.json";
inline constexpr const char* kLockFile = "lock";
inline constexpr const char* kCheckpointsFolder = "checkpoints";
inline constexpr const char* kNewestCheckpointLink = "checkpoint";
inline constexpr const char* kEventFilePrefix = "events.out.tfevents.";

/// Why `path`, which somebody wrote for a file in a run folder, cannot be one: it may lead out of the folder, or is the run's
/// own, or a name that one of the run's own has while it is written. Empty: it can.
std::string fault_of_run_file(std::string_view path);

/// The folder of a run, and the file system that keeps what is written in it: a run's is a ConfinedFileSystem. A plain value; the
/// file system outlives it.
struct RunFolder {
  std::filesystem::path path;  // empty: outside of a run, names are those of the current folder
  FileSystem* files = &disk();
  bool is_ours = true;                // this rank writes into it: rank 0 does
  GatheredFiles* gathered = nullptr;  // knows what a node of several ranks appends to; null: there is one rank

  /// A file of the folder, to append to; folders on the way to it are made. Throws UserError, also where a symbolic link leads
  /// out.
  GatheredFile append_to(const std::string& name) const;
};

}  // namespace sluice::engine
