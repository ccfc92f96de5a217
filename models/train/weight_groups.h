#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace sluice::models {

/// Weights that an optimizer treats otherwise than the rest.
struct WeightGroupOptions {
  std::string match;                   // of their names, see name_patterns.h
  double learning_rate_scale = 1;      // times the learning rate of the others
  std::optional<double> weight_decay;  // of all that it matches, vectors too; unset: as if there were no group

  bool operator==(const WeightGroupOptions&) const = default;
};

/// The first of `groups` that matches `name`; groups.size(): none.
size_t group_of(const std::string& name, const std::vector<WeightGroupOptions>& groups);

/// Throws UserError where groups[index] matches none of `names`, those that are trained, or only what groups before it have.
void check_group(const std::vector<std::string>& names, const std::vector<WeightGroupOptions>& groups, size_t index);

}  // namespace sluice::models
