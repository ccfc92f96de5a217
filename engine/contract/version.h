#pragma once

namespace sluice {

/// The version of this program. CMakeLists.txt reads it from this line.
inline constexpr char kVersionText[] = "0.1.0";

}  // namespace sluice
