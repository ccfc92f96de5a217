#pragma once

#include <cstddef>

namespace sluice::models {

/// One of several who write the same files into one folder, each its own ones. A value.
struct FileShare {
  int writer = 0;
  int writers = 1;

  /// Whether this one writes the file of this number.
  bool has(size_t file) const { return file % static_cast<size_t>(writers) == static_cast<size_t>(writer); }
};

}  // namespace sluice::models
