#pragma once

#include <cstdint>

namespace sluice::engine {

/// Time that a simulation counts. What takes years was given in another unit, or on purpose: it is refused, since times that are
/// added up must not leave int64_t.

/// Of one piece of work, or of one transfer. Throws UserError above a year.
int64_t simulated_ns(double ns);

/// Throws UserError where the clock of a simulation is beyond a hundred years.
void check_simulated_time(int64_t now_ns);

}  // namespace sluice::engine
