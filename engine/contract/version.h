#pragma once

namespace sluice {

/// The version of this program. CMakeLists.txt reads it from this line. Not inline: a plugin has its own.
constexpr char kVersionText[] = "0.1.0";

}  // namespace sluice
