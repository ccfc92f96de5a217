#pragma once

#include <string_view>

namespace sluice::engine {

/// The first line of a pipeline that `plan --config` or a run has written: what was layers before is one file there.
inline constexpr std::string_view kConfigHeading = "# The effective pipeline: every key, and where its value came from.\n";

}  // namespace sluice::engine
