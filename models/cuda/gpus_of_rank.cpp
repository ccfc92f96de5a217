#include "models/cuda/gpus_of_rank.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "base/text/strings.h"
#include "models/cuda/driver.h"

namespace sluice::models {
namespace {

std::vector<std::string> listed(std::string_view visible) {
  std::vector<std::string> names;
  while (true) {
    const size_t comma = visible.find(',');
    names.emplace_back(visible.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    visible.remove_prefix(comma + 1);
  }
}

// The number comes back as an exit status.
int gpus_there() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(gpus_of_driver());
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 0;
  return WEXITSTATUS(status);
}

}  // namespace

std::optional<std::string> gpus_of_rank(const WorldEnvironment& world, const std::optional<std::string>& visible, int there) {
  if (world.local_size == 1 || there == 0 || (visible && there == 1)) return std::nullopt;
  std::vector<std::string> names;
  for (int gpu = 0; gpu < there; ++gpu) names.push_back(std::to_string(gpu));
  if (visible) names = listed(*visible);
  names.resize(static_cast<size_t>(there));  // the driver ignores what is after a wrong one
  const int each = std::max(1, there / world.local_size), first = world.local_rank * each;
  if (first >= there) return "";
  return join({names.begin() + first, names.begin() + first + each}, ",");
}

void see_gpus_of_rank(const WorldEnvironment& world) {
  if (world.local_size == 1 || !has_driver()) return;
  const auto gpus = gpus_of_rank(world, environment_variable(kVisibleGpus), gpus_there());
  if (gpus) ::setenv(kVisibleGpus, gpus->c_str(), 1);
}

}  // namespace sluice::models
