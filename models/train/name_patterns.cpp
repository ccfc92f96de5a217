#include "models/train/name_patterns.h"

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

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
  return matches_any_name(result, names) ? result : std::string();
}

std::string help_for(const std::string& pattern, const std::vector<std::string>& names) {
  const std::string near = near_pattern(pattern, names);
  if (!near.empty()) return "did you mean " + sluice::quoted(near) + "?";
  return "the names are those of the tensors in the folder's files: " + names.front() + ", ..., " + names.back();
}

}  // namespace

bool matches_name(const std::string& pattern, const std::string& name) {
  const std::string whole = name.substr(0, name.find('['));
  return fnmatch(pattern.c_str(), whole.c_str(), FNM_NOESCAPE) == 0;
}

bool matches_any_name(const std::string& pattern, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) { return matches_name(pattern, name); });
}

void check_pattern(const std::string& pattern, const std::vector<std::string>& names) {
  if (matches_any_name(pattern, names)) return;
  throw UserError(sluice::quoted(pattern) + " matches no weight of the model", help_for(pattern, names));
}

}  // namespace sluice::models
