#pragma once

#include "engine/check/check_draft.h"
#include "engine/check/found_roles.h"

namespace sluice::engine::checking {

/// What is wrong with the roles of a pipeline that has some, or names some: nodes on none, on one that is not there or on the
/// wrong one; roles that nothing is on, or all.
void report_roles(Draft& draft, const FoundRoles& roles);

}  // namespace sluice::engine::checking
