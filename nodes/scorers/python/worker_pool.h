#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/process/subprocess.h"
#include "engine/contract/world/outside_work.h"

namespace sluice::nodes {

struct WorkerPoolOptions {
  SubprocessOptions command;
  size_t workers = 1;
  std::chrono::milliseconds start_timeout{120'000};                                      // for a worker's greeting
  std::chrono::milliseconds timeout{60'000};                                             // for the reply to a request
  std::function<void(const std::string& greeting)> greeted = [](const std::string&) {};  // throws what is wrong with it
};

/// Takes the line that answers a request. Throws UserError, "wrote ...", when it is no answer: the worker is killed then, because
/// nobody knows what its next lines would be for, and the request fails.
using TakeReply = std::function<void(size_t request, const std::string& line)>;

/// A worker's line, or what happened to the worker instead: "was killed by signal 11 (SEGV)".
struct WorkerReply {
  std::string line;
  std::string failure;  // empty: there is a line
};

/// Processes that answer lines. Each says one line when it is ready (its greeting), and then one line for each line that it is
/// sent.
///
/// A worker that ends, or that does not answer in time and is killed, fails the request that it was working on; another takes its
/// place at the next one. Belongs to one thread at a time.
class WorkerPool {
 public:
  /// Starts the workers and waits for their greetings. Throws UserError when one does not come.
  explicit WorkerPool(WorkerPoolOptions options);
  ~WorkerPool();

  /// The replies, in the order of the requests whatever the timing. A request has no end of a line in it. Throws what `wait`
  /// does; then workers that had something to do are killed.
  std::vector<WorkerReply> ask(
      std::span<const std::string> requests, const TakeReply& take = [](size_t, const std::string&) {},
      const engine::OutsideWait& wait = {});

 private:
  struct Worker;

  std::vector<WorkerReply> replies_to(std::span<const std::string> requests, const TakeReply& take,
                                      const engine::OutsideWait& wait);
  void start(Worker& worker);
  void work(Worker& worker, std::span<const std::string> requests, std::vector<WorkerReply>& replies, const TakeReply& take);
  void fail(Worker& worker, const std::string& what, std::vector<WorkerReply>& replies);
  void exchange() const;
  bool any_busy() const;

  WorkerPoolOptions options_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace sluice::nodes
