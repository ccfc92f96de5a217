#include "models/train/freeze.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/strings.h"

namespace sluice::models {
namespace {

bool matches(const std::string& pattern, const std::string& name) {
  const std::string whole = name.substr(0, name.find('['));
  return fnmatch(pattern.c_str(), whole.c_str(), FNM_NOESCAPE) == 0;
}

bool matches_any(const std::string& pattern, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches(pattern, name); });
}

// The pattern with every word between dots that no name has replaced by the nearest that one has; empty if it still matches
// nothing.
std::string near_pattern(const std::string& pattern, const std::vector<std::string>& names) {
  std::set<std::string> words;
  for (const std::string& name : names) {
    for (std::string& word : split(name.substr(0, name.find('[')), '.')) words.insert(std::move(word));
  }
  std::vector<std::string> parts = split(pattern, '.');
  for (std::string& part : parts) {
    if (part.find_first_of("*?[") != std::string::npos || words.contains(part)) continue;
    const std::string near = did_you_mean(part, {words.begin(), words.end()});
    if (!near.empty()) part = near;
  }
  std::string result = join(parts, ".");
  return matches_any(result, names) ? result : std::string();
}

std::string help_for(const std::string& pattern, const std::vector<std::string>& names) {
  const std::string near = near_pattern(pattern, names);
  if (!near.empty()) return "did you mean " + sluice::quoted(near) + "?";
  return "the names are those of the tensors in the folder's files: " + names.front() + ", ..., " + names.back();
}

}  // namespace

bool is_frozen(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) { return matches(pattern, name); });
}

void check_freeze(const std::vector<std::string>& names, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) {
    if (matches_any(pattern, names)) continue;
    throw UserError(sluice::quoted(pattern) + " matches no weight of the model", help_for(pattern, names));
  }
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
