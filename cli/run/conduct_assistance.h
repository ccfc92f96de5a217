#pragma once

#include "cli/run/conduct_run.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// What conduct_run() is on a rank that computes passes with another one (engine/run/assistance.h). It shows nothing, and ends
/// when that one does: what a signal asks for the rank that leads hears too. Returns the exit code.
int conduct_assistance(const engine::Plan& plan, const RunStart& start);

}  // namespace sluice::cli
