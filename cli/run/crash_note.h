#pragma once

#include <string>
#include <vector>

#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// While this lives, a signal such as SIGSEGV that ends the process is told of before, with the node that its thread worked on:
/// code of a plugin or a library may crash, and nothing else would name it. The process ends by the signal as it would have, with
/// a core file where the system makes them. Where somebody else handles such a signal already, nothing is done.
///
/// One at a time. Threads: began() and left() on those of executors; the handler runs on whichever thread crashes.
class CrashNote final : public engine::WorkObserver {
 public:
  /// `how_to_go_on`: with the run, for people.
  CrashNote(const engine::Plan& plan, const std::string& how_to_go_on);
  ~CrashNote() override;
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  void began(int executor, int node) override;
  void left(int executor) override;

 private:
  std::vector<std::string> nodes_;  // by index of Plan::nodes: where a crash was, for people
  const std::string help_;
};

}  // namespace sluice::cli
