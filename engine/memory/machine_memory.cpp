#include "engine/memory/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace sluice::engine {
namespace {

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t total_memory(const std::filesystem::path& root) {
  std::ifstream lines(root / "proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; lines >> key >> kib; std::getline(lines, unit)) {
    if (key == "MemTotal:") return kib * 1024;
  }
  return kNoLimit;
}

// "max", or no such file: no limit.
int64_t limit_in(const std::filesystem::path& file) {
  std::ifstream stream(file);
  int64_t bytes = 0;
  return stream >> bytes && bytes > 0 ? bytes : kNoLimit;
}

// The limits of a group and of all groups that it is in.
int64_t limit_upwards(const std::filesystem::path& mount, std::filesystem::path group, const char* file) {
  int64_t limit = limit_in(mount / file);
  for (; !group.empty() && group != group.root_path(); group = group.parent_path())
    limit = std::min(limit, limit_in(mount / group.relative_path() / file));
  return limit;
}

int64_t limit_of_group(const std::filesystem::path& root) {
  int64_t limit = kNoLimit;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {  // "0::/user.slice", or of version 1 "4:memory:/docker/..."
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) limit = std::min(limit, limit_upwards(root / "sys/fs/cgroup", group, "memory.max"));
    if (controllers == "memory")
      limit = std::min(limit, limit_upwards(root / "sys/fs/cgroup/memory", group, "memory.limit_in_bytes"));
  }
  return limit;
}

}  // namespace

int64_t memory_of_machine(const std::filesystem::path& root) {
  const int64_t bytes = std::min(total_memory(root), limit_of_group(root));
  return bytes == kNoLimit ? 0 : bytes;
}

}  // namespace sluice::engine
