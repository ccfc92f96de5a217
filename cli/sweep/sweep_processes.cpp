#include "cli/sweep/sweep_processes.h"

#include <algorithm>
#include <csignal>

#include "base/process/machine.h"
#include "cli/process/children.h"
#include "cli/process/core_shares.h"
#include "cli/process/exit_codes.h"

namespace sluice::cli {
namespace {

class Processes {
 public:
  Processes(const std::vector<SweepProcess>& all, int parallel, size_t runs)
      : all_(all), runs_(runs), at_work_(std::min(static_cast<size_t>(parallel), all.size())) {}

  SweepOutcome run() {
    while (may_start() || std::ranges::any_of(at_work_, [](const Child* child) { return child != nullptr; })) {
      start_what_may();
      children_.attend();
      for (Child* ended : children_.take_ended()) judge_end(*ended);
    }
    outcome_.signal = children_.asked_to_end();
    return outcome_;
  }

 private:
  bool may_start() const { return next_ < all_.size() && children_.asked_to_end() == 0; }

  void start_what_may() {
    for (size_t slot = 0; slot < at_work_.size(); ++slot) {
      if (at_work_[slot] != nullptr || !may_start()) continue;
      const SweepProcess& process = all_[next_++];
      children_.print("run " + std::to_string(process.number) + " of " + std::to_string(runs_) + ": " + process.name + "\n");
      const int slots = static_cast<int>(at_work_.size());
      at_work_[slot] =
          &children_.start(process.name, {.arguments = process.words,
                                          .output = slots == 1 ? ChildOutput::kShared : ChildOutput::kOnePipe,
                                          .cores = share_of_cores(cores_of_affinity(), static_cast<int>(slot), slots),
                                          .blocked = {SIGUSR1}});
    }
  }

  void judge_end(const Child& child) {
    const int code = child.process->shell_code();
    const bool as_asked =
        children_.asked_to_end() != 0 && (code == exit_code_of_signal(SIGINT) || code == exit_code_of_signal(SIGTERM));
    if (code != kDone && !as_asked) {
      outcome_.failed.push_back(child.called() + " " + child.process->how_it_ended());
      if (outcome_.failed_code == kDone) outcome_.failed_code = code;
      children_.print(outcome_.failed.back() + "\n");
    }
    std::ranges::replace(at_work_, &child, nullptr);
    children_.forget(child);
  }

  const std::vector<SweepProcess>& all_;
  const size_t runs_;
  Children children_;
  std::vector<const Child*> at_work_;  // by its share of the cores; null: nobody has it
  size_t next_ = 0;                    // of `all_`
  SweepOutcome outcome_;
};

}  // namespace

SweepOutcome run_processes(const std::vector<SweepProcess>& processes, int parallel, size_t runs) {
  return Processes(processes, parallel, runs).run();
}

}  // namespace sluice::cli
