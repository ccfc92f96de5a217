#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/device_name.h"

namespace sluice::engine {

/// A kind of devices that models may be on: those named NAME:0, NAME:1, ... A value of the registry, which plugins may add to.
/// What computes there is LibTorch: its back end of the same name (models/devices/device_named.h).
struct DeviceKind {
  std::string name;  // neither "cpu" nor with a colon

  /// What this machine lacks for the device of this number; nothing: it is there. Loads nothing large, since pipelines are
  /// checked where they cannot run.
  std::function<std::optional<MissingDevice>(int number)> missing;

  /// How much memory the device of this number has; 0: not known, as where it is missing. Loads nothing large either. Empty:
  /// never known.
  std::function<int64_t(int number)> memory_bytes = {};

  /// Makes LibTorch know the kind. Called before the process uses its first tensor, maybe several times, on one thread. Throws
  /// UserError.
  std::function<void()> use;
};

}  // namespace sluice::engine
