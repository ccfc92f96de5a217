#pragma once

namespace sluice::tests {

/// A sanitizer is in this build: everything takes many times as long. Compilers do not agree on a macro for that, so CMake
/// defines one.
#ifdef SLUICE_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace sluice::tests
