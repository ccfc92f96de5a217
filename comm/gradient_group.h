#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "comm/announcement.h"
#include "comm/transfers.h"
#include "engine/contract/world/gradient_group.h"

namespace c10d {
class Backend;
}

namespace sluice::comm {

/// Adds gradients over ranks that Gloo connects. Rank r of `size` has slots [r * slots / size, (r + 1) * slots / size), and parts
/// as subtrees_of() says.
///
/// Ownership: `ranks` belongs to this alone. Threads: operations may be asked for on any; one thread of this carries them out in
/// order, and calls `added`, `done` and `failed`. Beside the gradients it needs `most_staged` bytes, at most. All ranks have the
/// same `reach`.
///
/// Every operation is announced before anybody enters it (comm/announcement.h), so ranks that do not do the same fail at once.
///
/// Failure: what Gloo throws, or a bug, is given to `failed`, once, when there is somebody who waits (GradientGroup); it must
/// neither throw nor destroy this. All connections are closed before, so that the other ranks fail as well; no operation is
/// carried out after that, and no `done` called before abandon(). The destructor gives up what is not done, without `failed`, and
/// does not wait for other ranks.
class GlooGradients final : public engine::GradientGroup {
 public:
  using Failed = std::function<void(std::exception_ptr)>;
  static constexpr int64_t kMostStaged = 64 << 20;

  GlooGradients(std::shared_ptr<c10d::Backend> ranks, int slots, Failed failed, int64_t most_staged = kMostStaged,
                Reach reach = {});
  ~GlooGradients() override;

  void all_reduce(std::span<float* const> parts, int64_t count, std::function<void()> done) override;
  void reduce_scatter(std::span<float* const> parts, int64_t count, Added added, std::function<void()> done) override;
  void exchange(std::vector<Stretch> out, std::vector<Stretch> in, std::function<void()> done) override;
  void all_gather(float* values, std::vector<int64_t> begins, std::function<void()> done) override;
  void abandon() override;
  void forget() override;

 private:
  class Worker;
  struct Operation {
    Announcement announcement;  // without its sequence
    std::function<void(Worker&)> run;
    std::function<void()> done;
  };

  void end();
  void serve();
  bool wait_for_somebody(bool is_awaited);
  void wait_until_abandoned();
  void let_go();
  void carry_out();
  void begin(Operation operation);
  std::optional<Operation> take();
  bool abandoned();
  void fail(std::exception_ptr reason, bool is_awaited);

  const Failed failed_;
  const std::unique_ptr<Worker> worker_;
  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::deque<Operation> waiting_;
  bool ended_ = false;      // nothing more is carried out
  bool abandoned_ = false;  // and each `done` is called all the same
  bool destroyed_ = false;
  bool over_ = false;  // the thread is done, and uses nothing that was given
  std::jthread thread_;
};

}  // namespace sluice::comm
