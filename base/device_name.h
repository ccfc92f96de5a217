#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice {

/// The name of a device beside the CPU, in its parts: "cuda:0".
struct DeviceName {
  std::string kind;  // "cuda"
  int number = 0;    // below 128: as many as LibTorch can tell apart
};

/// Nothing for any other text, "cpu" and "cpu:1" among them. Whether there is such a kind it does not know.
std::optional<DeviceName> device_name(std::string_view text);

/// Why a device cannot be computed on, and what to do about it.
struct MissingDevice {
  std::string what;
  std::string help;
};

}  // namespace sluice
