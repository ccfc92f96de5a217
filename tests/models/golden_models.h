#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/golden.h"

namespace sluice::models {

/// A folder with a tiny model, and in expected.json what transformers says of it: tests/oracles/transformer_reference.py.
inline std::filesystem::path golden_model(const std::string& name) { return golden_path("models") / name; }

/// The names of all, in order.
inline std::vector<std::string> golden_models() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_path("models"))) {
    if (entry.is_directory()) names.push_back(entry.path().filename());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace sluice::models
