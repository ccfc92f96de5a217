#include "cli/pipeline/plugin_seal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "base/files/confined_file_system.h"
#include "base/files/file.h"
#include "base/json/json.h"
#include "engine/contract/run_folder.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// What a stranger cannot know of a file of this machine. The device is left out: its number changes when a disk is mounted again.
Json identity_of(const std::string& path, const struct stat& file) {
  const int64_t changed_ns = int64_t{file.st_ctim.tv_sec} * 1'000'000'000 + file.st_ctim.tv_nsec;
  return {{"path", path}, {"inode", int64_t(file.st_ino)}, {"changed_ns", changed_ns}, {"bytes", int64_t{file.st_size}}};
}

std::optional<struct stat> look_at(const fs::path& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return std::nullopt;
  return file;
}

bool is_of_this_user_or_root(const struct stat& file) { return file.st_uid == ::geteuid() || file.st_uid == 0; }

}  // namespace

void seal_plugins(const fs::path& run_folder, const std::vector<std::string>& plugins) {
  const fs::path file = run_folder / engine::kPluginsFile;
  ConfinedFileSystem files({run_folder});
  if (plugins.empty()) {
    files.remove_file(file);
    return;
  }
  Json seals = Json::array();
  for (const std::string& plugin : plugins) {
    if (const auto status = look_at(plugin)) seals.push_back(identity_of(plugin, *status));
  }
  write_file_atomically(file, seals.dump(1) + "\n", files);
}

bool is_sealed(const fs::path& run_folder, const fs::path& plugin) {
  const auto status = look_at(plugin);
  if (!status || !is_of_this_user_or_root(*status)) return false;
  try {
    const Json seals = read_json(run_folder / engine::kPluginsFile);
    return seals.is_array() && std::ranges::find(seals, identity_of(plugin.string(), *status)) != seals.end();
  } catch (const std::exception&) {
    return false;  // not there, or not what a run writes
  }
}

}  // namespace sluice::cli
