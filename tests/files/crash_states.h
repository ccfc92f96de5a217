#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/files/disk_model.h"
#include "tests/files/recording_file_system.h"

namespace sluice {

/// What a power cut may leave of a recorded folder.
struct CrashState {
  struct Entry {
    FolderContent::Kind kind = FolderContent::Kind::kFile;
    DiskModel::Bytes bytes;  // a link: its target
  };

  std::map<std::filesystem::path, Entry> entries;  // folders before what is in them
  size_t operations = 0;                           // the most that may be complete when the power cut leaves this
  std::string how;                                 // how it comes to be, for messages of tests
};

struct CrashOptions {
  /// For each first part of the operations: where more states than that are possible, so many of them are drawn. The extremes are
  /// always there: all or nothing of the names, of one folder's names, of the bytes, of one file's bytes.
  size_t most = 256;
  uint64_t seed = 1;
  size_t first = 0;  // only states of power cuts when that many operations are complete, or more
};

/// The distinct ones, of a power cut before, between and after the recorded operations; see DiskModel for what may be lost. To
/// test that something is durable once a call has returned, compare `operations` with RecordingFileSystem::size() after that
/// call.
std::vector<CrashState> crash_states(const Recording& recording, const CrashOptions& options = {});

/// Makes `folder` hold that and nothing else.
void materialize(const CrashState& state, const std::filesystem::path& folder);

}  // namespace sluice
