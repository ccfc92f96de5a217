#pragma once

#include <map>
#include <string>

#include "comm/store.h"

namespace sluice::comm {

/// Throws UserError, on all ranks the same, where some rank has another value than the first one under some name, or none: the
/// first name of all, both ranks and both values. A rank with an empty value has nothing to compare under that name.
///
/// A process that takes the place of one that is lost throws alone.
///
/// Waits for: what the other ranks have. Ends when: all have said it, or after `seconds`.
void compare_values(const Store& store, const std::map<std::string, std::string>& mine, double seconds);

}  // namespace sluice::comm
