#pragma once

#include <string>
#include <vector>

#include "engine/check/check.h"

namespace sluice::engine {

/// What can be said of a pipeline whose plugins are not loaded: `result` is as that of check(), but a type, component, preset
/// or device that the registry does not know is no problem there. It may be the plugin's. Each is a line of `unchecked`, with
/// its place. Where there are such lines there is no plan, because nothing is known of what these nodes read, write and hold.
struct PartlyChecked {
  CheckResult result;
  std::vector<std::string> unchecked;
};

/// Never throws for what a user wrote.
PartlyChecked check_without_plugins(const PipelineSpec& spec, const Registry& registry, int ranks = 0);

}  // namespace sluice::engine
