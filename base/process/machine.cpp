#include "base/process/machine.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();

int64_t total_memory(const fs::path& root) {
  std::ifstream lines(root / "proc/meminfo");
  std::string key, unit;
  for (int64_t kib = 0; lines >> key >> kib; std::getline(lines, unit)) {
    if (key == "MemTotal:") return kib * 1024;
  }
  return kNoLimit;
}

// Where files may limit something.
struct ControlFolder {
  fs::path mount, group;
  bool second_version = false;
};

// The folders of the process's groups that know of `controller`. A line is "0::/user.slice", or of version 1
// "4:cpu,cpuacct:/docker/...".
std::vector<ControlFolder> folders_of(const std::string& controller, const fs::path& root) {
  std::vector<ControlFolder> folders;
  std::ifstream lines(root / "proc/self/cgroup");
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty()) folders.push_back({root / "sys/fs/cgroup", group, true});
    if (("," + controllers + ",").find("," + controller + ",") != std::string::npos)
      folders.push_back({root / "sys/fs/cgroup" / controller, group, false});
  }
  return folders;
}

// The least of what `limit_in(folder)` says of a group and of all groups that it is in.
template <class LimitIn>
int64_t limit_upwards(const ControlFolder& folder, const LimitIn& limit_in) {
  int64_t limit = limit_in(folder.mount);
  for (fs::path group = folder.group; !group.empty() && group != group.root_path(); group = group.parent_path())
    limit = std::min(limit, limit_in(folder.mount / group.relative_path()));
  return limit;
}

// A positive number at the beginning of a file; "max", "-1" or no such file: none.
int64_t number_in(const fs::path& file) {
  std::ifstream stream(file);
  int64_t number = 0;
  return stream >> number && number > 0 ? number : kNoLimit;
}

int64_t cores_of(int64_t quota, int64_t period) {
  return quota == kNoLimit || period <= 0 || period == kNoLimit ? kNoLimit : (quota + period - 1) / period;
}

int64_t cores_in_second_version(const fs::path& folder) {
  std::ifstream stream(folder / "cpu.max");  // "50000 100000": microseconds of processor time, of a period; "max 100000"
  int64_t quota = 0, period = 0;
  return stream >> quota >> period && quota > 0 ? cores_of(quota, period) : kNoLimit;
}

int64_t cores_in_first_version(const fs::path& folder) {
  return cores_of(number_in(folder / "cpu.cfs_quota_us"), number_in(folder / "cpu.cfs_period_us"));
}

}  // namespace

int64_t memory_of_machine(const fs::path& root) {
  int64_t bytes = total_memory(root);
  for (const ControlFolder& folder : folders_of("memory", root)) {
    const char* file = folder.second_version ? "memory.max" : "memory.limit_in_bytes";
    bytes = std::min(bytes, limit_upwards(folder, [&](const fs::path& group) { return number_in(group / file); }));
  }
  return bytes == kNoLimit ? 0 : bytes;
}

std::vector<int> cores_of_affinity() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {};
  std::vector<int> cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

std::string steady_clock_name(const fs::path& root) {
  std::ifstream file(root / "proc/sys/kernel/random/boot_id");
  std::string start;
  std::error_code unknown;
  const fs::path clocks = fs::read_symlink(root / "proc/self/ns/time", unknown);
  return file >> start ? start + " " + clocks.string() : std::string();
}

void keep_to_cores(const std::vector<int>& cores) {
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (const int core : cores) CPU_SET(core, &wanted);
  if (!cores.empty()) sched_setaffinity(0, sizeof wanted, &wanted);
}

int64_t available_cores(const fs::path& root) {
  int64_t cores = static_cast<int64_t>(cores_of_affinity().size());
  if (cores == 0) cores = static_cast<int64_t>(std::thread::hardware_concurrency());
  for (const ControlFolder& folder : folders_of("cpu", root))
    cores = std::min(cores, limit_upwards(folder, folder.second_version ? cores_in_second_version : cores_in_first_version));
  return std::max<int64_t>(1, cores);
}

}  // namespace sluice
