#include "cli/run/begin_executor.h"

#include "engine/memory/memory_bound.h"
#include "models/devices/streams.h"
#include "nodes/models/passes/threads.h"

namespace sluice::cli {

void begin_executor(const engine::Plan& plan, int rank, const engine::ExecutorStart& executor) {
  nodes::use_threads(executor.threads);
  models::use_own_streams(engine::devices_of(plan, rank),
                          executor.samples ? models::StreamOrder::kFirst : models::StreamOrder::kUsual);
}

}  // namespace sluice::cli
