// One rank of a run, for tests that kill it: it joins, says "ready PID" once it has seen what each rank does, and adds numbers
// with the others, again and again.
//
// usage: rank RANK SIZE PORT DEAD_AFTER_SECONDS END
// END: "never"; "well" or "fails", after 20 additions. A loss of another rank is said as "lost: SENTENCE"; it ends then.

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "comm/cluster.h"

namespace sluice {
namespace {

// What the run waits for: a sum, or that there will be none.
class Waiting {
 public:
  void fail(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    error_ = std::move(error);
    if (open_) std::exchange(open_, nullptr)->set_exception(error_);
  }

  std::future<void> begin() {
    const std::lock_guard lock(mutex_);
    open_ = std::make_shared<std::promise<void>>();
    std::future<void> future = open_->get_future();
    if (error_) std::exchange(open_, nullptr)->set_exception(error_);
    return future;
  }

  void came() {
    const std::lock_guard lock(mutex_);
    if (open_) std::exchange(open_, nullptr)->set_value();
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<std::promise<void>> open_;
  std::exception_ptr error_;
};

void wait_for_signs(const comm::Cluster& cluster) {
  const auto is_unseen = [](const engine::RankSeen& rank) { return rank.last.doing.empty(); };
  while (std::ranges::any_of(cluster.seen(), is_unseen)) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

int run(const comm::JoinOptions& join, double dead_after, const std::string& end) {
  Waiting waiting;
  comm::Cluster cluster({.join = join,
                         .beat_seconds = .1,
                         .dead_after_seconds = dead_after,
                         .sign = [] { return engine::RankSign{.doing = "in 'generate'"}; },
                         .failed = [&](std::exception_ptr error) { waiting.fail(std::move(error)); }});
  wait_for_signs(cluster);
  std::cout << "ready " << ::getpid() << std::endl;
  try {
    for (int64_t iteration = 0; end == "never" || iteration < 20; ++iteration) {
      auto came = waiting.begin();
      cluster.reductions().combine({.iteration = iteration}, {}, [&](const engine::Contribution&) { waiting.came(); });
      came.get();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  } catch (const UserError& error) {
    std::cout << "lost: " << error.message() << std::endl;
    cluster.end(false, error.what());
    return 1;
  }
  cluster.end(end == "well", "error: the disk is full");
  std::cout << "ended" << std::endl;
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  try {
    return sluice::run({.rank = std::atoi(argv[1]), .size = std::atoi(argv[2]), .port = std::atoi(argv[3])}, std::atof(argv[4]),
                       argv[5]);
  } catch (const std::exception& error) {
    std::cout << "failed: " << error.what() << std::endl;
    return 1;
  }
}
