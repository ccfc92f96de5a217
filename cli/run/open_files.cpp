#include "cli/run/open_files.h"

#include <sys/resource.h>

#include <algorithm>
#include <string>

#include "base/error.h"

namespace sluice::cli {
namespace {

constexpr rlim_t kOfTheProcess = 30;  // libraries, files of the run, its own connections
constexpr rlim_t kOfARank = 4;        // connections to the store; and one for the gradients of each model

}  // namespace

void require_open_files(const engine::Plan& plan, int ranks) {
  const auto is_trained = [](const engine::PlanModel& model) { return model.usage.updated; };
  const auto trained = static_cast<rlim_t>(std::ranges::count_if(plan.models, is_trained));
  const rlim_t least = kOfTheProcess + static_cast<rlim_t>(ranks) * (kOfARank + trained);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= least) return;
  throw UserError("this process may have " + std::to_string(limit.rlim_cur) + " files and connections open, and rank 0 of " +
                      std::to_string(ranks) + " needs some " + std::to_string(least),
                  "raise the limit: ulimit -n " + std::to_string(2 * least) + ", or LimitNOFILE of a service");
}

}  // namespace sluice::cli
