#include "models/train/weight_groups.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "models/train/name_patterns.h"

namespace sluice::models {

size_t group_of(const std::string& name, const std::vector<WeightGroupOptions>& groups) {
  const auto matches = [&](const WeightGroupOptions& group) { return matches_name(group.match, name); };
  return static_cast<size_t>(std::ranges::find_if(groups, matches) - groups.begin());
}

void check_group(const std::vector<std::string>& names, const std::vector<WeightGroupOptions>& groups, size_t index) {
  const std::string& pattern = groups[index].match;
  check_pattern(pattern, names);
  if (std::ranges::any_of(names, [&](const std::string& name) { return group_of(name, groups) == index; })) return;
  throw UserError(sluice::quoted(pattern) + " matches only weights of groups before it",
                  "a weight belongs to the first group "
                  "that matches it: put this one in front, or remove it");
}

}  // namespace sluice::models
