#include "models/train/freeze.h"

#include <algorithm>

#include "base/error.h"
#include "models/train/name_patterns.h"

namespace sluice::models {

bool is_frozen(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches_name(pattern, name); });
}

void check_freeze(const std::vector<std::string>& names, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) check_pattern(pattern, names);
  if (std::all_of(names.begin(), names.end(), [&](const std::string& name) { return is_frozen(name, patterns); })) {
    throw UserError("nothing is left to train: every weight of the model is frozen", "freeze less, or remove optimizer");
  }
}

void freeze(Weights& weights, const std::vector<std::string>& patterns) {
  for (const auto& [name, tensor] : weights.named()) {
    if (is_frozen(name, patterns)) tensor.set_requires_grad(false);
  }
}

}  // namespace sluice::models
