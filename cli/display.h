#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "cli/run_history.h"
#include "engine/run.h"

namespace sluice::cli {

/// Shows a run while it goes on: on a terminal a line that is redrawn a few times a second, otherwise one line an iteration.
/// Owns a thread from construction to stop(), which also calls `poll` every 50 ms. Output that fails, as on a closed terminal, is lost.
class Display {
 public:
  Display(const engine::Plan& plan, const RunHistory& history, const engine::Run& run, std::function<void(Display&)> poll);
  ~Display() { stop(); }

  /// An iteration is done; called by the run.
  void iteration_done();

  /// A line of its own. From any thread.
  void say(const std::string& line, std::FILE* stream = stdout);

  /// Ends the thread and clears the redrawn line.
  void stop();

 private:
  void loop();
  std::string live_text() const;

  const engine::Plan& plan_;
  const RunHistory& history_;
  const engine::Run& run_;
  const std::function<void(Display&)> poll_;
  const bool terminal_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace sluice::cli
