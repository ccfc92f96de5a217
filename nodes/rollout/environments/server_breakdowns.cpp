#include "nodes/rollout/environments/server_breakdowns.h"

#include <bit>

#include "base/error.h"
#include "base/log.h"
#include "base/text/printable.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

std::string place(const Turn& turn) {
  return "node '" + turn.node + "', iteration " + std::to_string(turn.iteration) + ", turn " + std::to_string(turn.index) +
         " of sample " + std::to_string(turn.sample) + " of group " + std::to_string(turn.group);
}

}  // namespace

void ServerBreakdowns::note(const ToolAnswer& answer, const Turn& turn) {
  if (!answer.server) return;
  const bool has_broken_down = !answer.breakdown.empty();
  const Count count = counted(*answer.server, has_broken_down);
  if (!has_broken_down) return;
  if (most_ > 0 && count.in_a_row >= most_)
    throw UserError(answer.breakdown + "; that was its breakdown number " + std::to_string(count.in_a_row) + " in a row",
                    "most_breakdowns of the environment says how many end the run; 0: none do");
  if (std::has_single_bit(static_cast<uint64_t>(count.all)))
    log_warning(place(turn) + ": " + printable(answer.breakdown) + "; " + plural(count.all, "call") +
                " without an answer so far");
}

ServerBreakdowns::Count ServerBreakdowns::counted(size_t server, bool has_broken_down) {
  const std::lock_guard lock(mutex_);
  Count& count = counts_[server];
  count.all += has_broken_down ? 1 : 0;
  count.in_a_row = has_broken_down ? count.in_a_row + 1 : 0;
  return count;
}

}  // namespace sluice::nodes
