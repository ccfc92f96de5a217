#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/json/json.h"
#include "base/process/subprocess.h"
#include "engine/contract/contract.h"
#include "nodes/rollout/environments/environment.h"

namespace sluice::nodes {

/// An environment that is another program, in any language.
///
///   environment = { type = "process", command = ["python3", "env.py"], folder = ".", workers = 2, timeout_seconds = 60.0,
///                   start_timeout_seconds = 120.0 }
///
/// For each turn it reads one line from its stdin and writes one to its stdout (and flushes it); its stderr is for people:
///
///   {"id": 0, "prompt": "...", "label": "...", "transcript": "...", "last": "...", "turn": 0, "iteration": 0, "group": 3, "sample": 1}
///   {"id": 0, "text": "...", "done": false, "reward": 0.5}
///
/// All keys of the reply but the id, which says what it replies to, may be left out: "", false, none. Strings are those of Turn.
/// `workers` processes are started by the first turns that need them, and live until the run ends; any of them may get any turn.
/// A process that ends, that does not reply within timeout_seconds, or whose line is no reply, ends the run with an error that
/// holds the end of its stderr. While it starts it says nothing, so it is its first reply that may take start_timeout_seconds
/// longer.
struct ProcessEnvironmentParams {
  std::vector<std::string> command;
  std::filesystem::path folder;
  int64_t workers = 1;
  double timeout_seconds = 60;
  double start_timeout_seconds = 120;
};

class ProcessEnvironment final : public Environment {
 public:
  static void describe(engine::Contract<ProcessEnvironmentParams>& contract);

  explicit ProcessEnvironment(const ProcessEnvironmentParams& params) : params_(params) {}

  Reply reply(const Turn& turn) const override;
  int64_t most_calls() const override { return params_.workers; }

 private:
  struct Worker {
    std::unique_ptr<Subprocess> process;
    int64_t replies = 0;  // that have come: the id of the next turn
  };

  Worker& worker_of_this_thread() const;
  void end_process_of_this_thread() const;
  std::string answer(const Worker& worker, const std::string& request, const engine::OutsideWait& wait) const;
  [[noreturn]] void throw_late(const Worker& worker) const;
  [[noreturn]] void fail(const Problem& what, const std::string& errors) const;

  ProcessEnvironmentParams params_;

  // A process serves one turn at a time, so each caller has its own.
  mutable std::mutex mutex_;  // guards the map, not what is in it
  mutable std::map<std::thread::id, Worker> workers_;
};

/// The line for a turn, without its end. `id`: of the turn, for the process that gets it.
std::string request_line(int64_t id, const Turn& turn);

/// What a process replied to the turn with this id. Throws UserError when it is no reply to it.
Reply parse_reply(int64_t id, const std::string& line);

}  // namespace sluice::nodes
