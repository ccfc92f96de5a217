#pragma once

#include "engine/plan/plan.h"

namespace sluice::cli {

/// Throws UserError where this process may not have as many files and connections open as rank 0 of so many ranks needs at least:
/// the others would wait for one that cannot hear them, each until its time to join is over.
void require_open_files(const engine::Plan& plan, int ranks);

}  // namespace sluice::cli
