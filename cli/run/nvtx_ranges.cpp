#include "cli/run/nvtx_ranges.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#endif

namespace sluice::cli {
namespace {

bool driver_is_loaded(const std::filesystem::path& root) {
  std::error_code ignored;
  return std::filesystem::exists(root / "dev/nvidiactl", ignored) ||
         std::filesystem::exists(root / "proc/driver/nvidia", ignored);
}

// Empty where the headers are missing.
std::optional<RangeHooks> built_in_hooks() {
#if __has_include(<nvtx3/nvToolsExt.h>)
  return RangeHooks{.push = [](const char* name) { ::nvtxRangePushA(name); }, .pop = [] { ::nvtxRangePop(); }};
#else
  return std::nullopt;
#endif
}

}  // namespace

std::optional<RangeHooks> nvtx_hooks(const std::filesystem::path& root) {
  return driver_is_loaded(root) ? built_in_hooks() : std::nullopt;
}

}  // namespace sluice::cli
