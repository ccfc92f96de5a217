#pragma once

#include <optional>
#include <string_view>

#include "base/problem.h"
#include "dsl/text_lines.h"

namespace sluice::dsl {

/// What to say of a text that is not TOML when it looks like YAML, as configurations of other systems do: that it is, and how its
/// begin looks in TOML if it has the tables of a pipeline. Nothing where it does not look like YAML.
std::optional<Problem> yaml_problem(std::string_view text, const TextLines& lines);

}  // namespace sluice::dsl
