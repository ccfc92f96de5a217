#pragma once

#include "base/error.h"

namespace sluice::cli {

/// Warns of the first of these lines of a file, each of which has an error that names it, and tells how many are left out. Nothing
/// where there are none.
void warn_of_damaged_lines(const Problems& damage);

}  // namespace sluice::cli
