#include "cli/run/conduct_assistance.h"

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/process/exit_codes.h"
#include "cli/process/run_signals.h"
#include "cli/process/stop_signals.h"
#include "cli/run/begin_executor.h"
#include "cli/run/rank_options.h"
#include "engine/memory/memory_meter.h"
#include "engine/plan/rank_groups.h"
#include "engine/run/assistance.h"
#include "models/memory/tensor_pool.h"

namespace sluice::cli {
namespace {

engine::RunOptions options_of(const engine::Plan& plan, const RunStart& start) {
  engine::RunOptions options = options_of_rank(start);
  options.on_executor_start = [&plan, rank = start.ranks.rank()](const engine::ExecutorStart& executor) {
    begin_executor(plan, rank, executor);
  };
  return options;
}

std::string what_it_does(const engine::Plan& plan, int rank) {
  if (!plan.forwards(rank)) return "assisting rank " + std::to_string(engine::group_of(plan, rank).front());
  std::vector<std::string> asking;
  for (const int peer : engine::forward_peers(plan, rank, *plan.role_of(rank))) asking.push_back(std::to_string(peer));
  return "computing passes for " + std::string(asking.size() == 1 ? "rank " : "ranks ") + join(asking, ", ");
}

}  // namespace

int conduct_assistance(const engine::Plan& plan, const RunStart& start) {
  RunSignals signals;
  int64_t save_requests = 0;
  engine::Assistance assistance(plan, options_of(plan, start));
  models::TensorPool::of_process().keep_freed();
  const StopSignals stop_signals;
  const std::string doing = what_it_does(plan, start.ranks.rank());
  start.ranks.watch({.failed = [&](const std::exception_ptr& error) { assistance.fail(error); },
                     .sign =
                         [&] {
                           save_requests += signals.take_save_request();
                           return engine::RankSign{.doing = doing,
                                                   .resident_bytes = engine::resident_bytes(),
                                                   .interrupted = stop_signals.seen() != 0,
                                                   .save_requests = save_requests};
                         },
                     .lost = {},
                     .back = {}});
  std::string failure;
  try {
    assistance.execute();
  } catch (const std::exception& error) {
    failure = first_line(error.what());
    std::fprintf(stderr, "%s\n", printable(failure, Lines::kKept).c_str());
  }
  start.ranks.end(failure.empty(), failure);
  start.ranks.watch({});
  const bool ended_with_others = failure.empty() || start.ranks.others_failed();  // who may be gone at once where all are asked
  if (ended_with_others && stop_signals.seen() != 0) return exit_code_of_signal(stop_signals.seen());
  if (failure.empty()) return kDone;
  return start.ranks.was_given_up() ? kGivenUp : kFailed;
}

}  // namespace sluice::cli
