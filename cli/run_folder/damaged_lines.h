#pragma once

#include <optional>

#include "base/error.h"

namespace sluice::cli {

// What was written by a run and may be damaged is left out by whoever only looks at it. Thread-safe.

/// What `read()` returns. Nothing: it has thrown a UserError, whose first problem is added to `damage`.
template <class Read>
auto read_or_note(const Read& read, Problems& damage) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const UserError& error) {
    damage.push_back(error.problems().front());
    return std::nullopt;
  }
}

/// Warns of the first of these lines of a file, each of which has an error that names it, and tells how many are left out.
/// Nothing where there are none.
void warn_of_damaged_lines(const Problems& damage);

}  // namespace sluice::cli
