#pragma once

#include "engine/plan/plan.h"
#include "engine/run/run.h"

namespace sluice::cli {

/// Gives the calling thread, that of an executor or of one that assists, its cores, and streams of its own on the devices of this
/// rank: what is trained on a GPU and what is sampled there go on side by side, and a step that samples, which is short, goes
/// first.
void begin_executor(const engine::Plan& plan, int rank, const engine::ExecutorStart& executor);

}  // namespace sluice::cli
