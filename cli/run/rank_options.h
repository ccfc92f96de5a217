#pragma once

#include "cli/run/conduct_run.h"
#include "engine/run/run.h"

namespace sluice::cli {

/// What a run is told on every rank, also on one that only assists: its folder, what it goes on from, and the other ranks.
engine::RunOptions options_of_rank(const RunStart& start);

}  // namespace sluice::cli
