#pragma once

#include <string>
#include <string_view>

#include "base/problem.h"
#include "dsl/text_lines.h"

namespace sluice::dsl {

/// Says in a person's words what the parser found wrong. `description` is the parser's own text ("Error while parsing value:
/// could not determine value type"); line and column are where it stopped.
Problem syntax_problem(std::string_view text, const TextLines& lines, std::string_view description, int line, int column);

}  // namespace sluice::dsl
