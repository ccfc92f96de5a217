#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "engine/contract/state.h"
#include "engine/contract/world/metrics.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

inline constexpr const char* kManifestName = "manifest.json";

/// What a checkpoint is, and the sizes and checksums of its files: `manifest.json` in its folder. A plain value.
struct Manifest {
  struct File {
    std::string path;  // in the checkpoint's folder
    int64_t bytes = 0;
    uint32_t crc32c = 0;
  };

  std::string program_version;
  std::string saved_at;                    // "2026-11-22T10:15:00Z"
  int64_t iterations = 0;                  // that are complete: the run goes on with the iteration of this index
  int64_t oldest_version = 0;              // of the weights that it needs; the newest is `iterations`
  MetricRow metrics;                       // of the last complete iteration
  std::vector<EffectiveKey> pipeline;      // the effective one, without origins
  std::map<std::string, NodeState> nodes;  // by name
  std::map<std::string, int64_t> growing;  // files of the run folder that a run appends to, by name: bytes at this moment
  std::vector<File> files;
};

/// Size and checksum of the file at `path` in a checkpoint's folder. Reads it some megabytes at a time. Throws UserError.
Manifest::File described(const std::filesystem::path& checkpoint, const std::filesystem::path& path);

/// The first line holds the checksum of all lines after it, so that a manifest vouches for itself.
std::string manifest_json(const Manifest& manifest);

/// Throws UserError saying what is wrong with it; `path` is what it is called.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

/// Of a checkpoint's folder. Throws UserError.
Manifest read_manifest(const std::filesystem::path& checkpoint);

}  // namespace sluice::engine
