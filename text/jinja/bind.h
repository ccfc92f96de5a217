#pragma once

#include "text/jinja/ast.h"

namespace sluice::text::jinja {

/// Gives every variable of the tree its place and every scope the loads that enter it; refuses filters and tests that do not
/// exist (outside of an if, where the template may have asked before). Throws SyntaxFailure.
void bind(Tree& tree);

}  // namespace sluice::text::jinja
