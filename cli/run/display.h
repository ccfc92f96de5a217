#pragma once

#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "cli/run/run_history.h"
#include "cli/terminal/ink.h"
#include "engine/run/run.h"

namespace sluice::cli {

/// Shows a run while it goes on: on a terminal a line that is redrawn a few times a second, otherwise one line an iteration. The
/// line is as wide as the terminal is at that moment, with colours where there are any, and with a curve of the score. Owns a
/// thread from construction to stop(), which also calls `poll` every 50 ms. Output that fails, as on a closed terminal, is lost.
class Display {
 public:
  Display(const engine::Plan& plan, const RunHistory& history, const engine::Run& run, std::function<void()> poll);
  ~Display() { stop(); }

  /// An iteration is done; called by the run. `samples`: lines to show below it, each with a newline; mostly none.
  void iteration_done(const std::string& samples);

  /// A line of its own, with escapes for what could steer the terminal. From any thread.
  void say(const std::string& line, Ink ink = Ink::kPlain, std::FILE* stream = stdout);

  /// Ends the thread and clears the redrawn line.
  void stop();

  /// What standard output can show.
  const Abilities& able() const { return able_; }

  /// Cells of a line: of the terminal, or what is readable in a file.
  size_t width() const;

 private:
  void loop();
  std::vector<Piece> live_line() const;
  std::string iteration_line() const;

  const engine::Plan& plan_;
  const RunHistory& history_;
  const engine::Run& run_;
  const std::function<void()> poll_;
  const Abilities able_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace sluice::cli
