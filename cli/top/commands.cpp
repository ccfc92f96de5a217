#include "cli/top/commands.h"

#include <memory>

namespace sluice::cli {

void add_top_command(Command& program) {
  Command& top = program.add("top", "watch a run: what works, what waits for what, what is in flight (q quits)",
                             {"rlhf-run top runs/ppo-20260131-180000", "rlhf-run top runs/ppo --once"});
  struct Taken {
    std::filesystem::path folder;
    bool once = false;
  };
  const auto taken = std::make_shared<Taken>();
  top.argument("folder", taken->folder, Values::folder(), "the run folder").required();
  top.flag("--once", taken->once, "print it once, also on a terminal");
  top.runs([taken] { return show_top(taken->folder, taken->once); });
}

}  // namespace sluice::cli
