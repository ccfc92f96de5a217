#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// Marks what a thread does from push() to the pop() that belongs to it. Ranges of a thread nest. Any thread may call both.
struct RangeHooks {
  std::function<void(const char* name)> push;
  std::function<void()> pop;
};

/// Hooks that show ranges in Nsight Systems and other tools that read NVTX. Nothing where nobody could see them: the program was
/// built without NVTX's headers, or no NVIDIA driver is loaded (it shows as /dev/nvidiactl or /proc/driver/nvidia). Without such
/// a tool attached a call costs next to nothing. `root` stands for `/`.
std::optional<RangeHooks> nvtx_hooks(const std::filesystem::path& root = "/");

/// Marks every piece of work of a run with the name of its node.
class RangeObserver final : public engine::WorkObserver {
 public:
  /// `plan` outlives the observer.
  RangeObserver(const engine::Plan& plan, RangeHooks hooks) : plan_(plan), hooks_(std::move(hooks)) {}

  void began(int, int node) override { hooks_.push(plan_.nodes[static_cast<size_t>(node)].name.c_str()); }
  void left(int) override { hooks_.pop(); }

 private:
  const engine::Plan& plan_;
  const RangeHooks hooks_;
};

}  // namespace sluice::cli
