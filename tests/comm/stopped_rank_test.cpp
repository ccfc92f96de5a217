// A rank that is a process of its own, stopped or killed while gradients are added.

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <torch/csrc/distributed/c10d/FileStore.hpp>

#include "comm/gradient_group.h"
#include "comm/process_group.h"
#include "tests/comm/gradients.h"
#include "tests/temporary_folder.h"

namespace sluice::comm::stopped_rank_test {
namespace {

using namespace std::chrono_literals;

constexpr int64_t kFloats = 4 << 20;

c10::intrusive_ptr<c10d::Store> store_in(const TemporaryFolder& folder) {
  return c10::make_intrusive<c10d::FileStore>(folder.path() / "store", 2);
}

// Adds again and again, until it is killed.
[[noreturn]] void be_rank_1(const TemporaryFolder& folder, Way way) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto store = store_in(folder);
  GlooGradients group(
      connect_ranks(*store, "ranks", {1, 2}), 2, [](const std::exception_ptr&) { ::_exit(0); }, GlooGradients::kMostStaged,
      reach_of(way));
  while (true) BegunSum(group, {Floats(kFloats)}).done().wait();
}

class RankOfItsOwn {
 public:
  RankOfItsOwn(const TemporaryFolder& folder, Way way) : process_(::fork()) {
    if (process_ == 0) be_rank_1(folder, way);
  }
  ~RankOfItsOwn() {
    send(SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  RankOfItsOwn(const RankOfItsOwn&) = delete;
  RankOfItsOwn& operator=(const RankOfItsOwn&) = delete;

  void send(int signal) const { ::kill(process_, signal); }

 private:
  const pid_t process_;
};

struct Lost {
  std::promise<std::exception_ptr> reason;
  GlooGradients::Failed failed = [this](std::exception_ptr why) { reason.set_value(std::move(why)); };
};

class FaultOfARank : public ::testing::TestWithParam<Way> {};

TEST_P(FaultOfARank, KilledWhileGradientsAreAddedFailsTheOthers) {
  const TemporaryFolder folder;
  const RankOfItsOwn other(folder, GetParam());
  const auto store = store_in(folder);
  Lost lost;
  GlooGradients group(connect_ranks(*store, "ranks", {0, 2}), 2, lost.failed, GlooGradients::kMostStaged, reach_of(GetParam()));
  BegunSum(group, {Floats(kFloats)}).done().wait();
  other.send(SIGKILL);
  std::vector<std::unique_ptr<BegunSum>> sums;
  for (int i = 0; i < 10; ++i) sums.push_back(std::make_unique<BegunSum>(group, std::vector<Floats>{Floats(kFloats)}));
  EXPECT_EQ(lost.reason.get_future().wait_for(60s), std::future_status::ready);
}

TEST_P(FaultOfARank, StoppedWhileGradientsAreAddedDoesNotHoldUpTheEnd) {
  const TemporaryFolder folder;
  const RankOfItsOwn other(folder, GetParam());
  const auto store = store_in(folder);
  Lost lost;
  std::vector<std::unique_ptr<BegunSum>> sums;
  std::optional<GlooGradients> group;
  group.emplace(connect_ranks(*store, "ranks", {0, 2}), 2, lost.failed, GlooGradients::kMostStaged, reach_of(GetParam()));
  for (int i = 0; i < 10; ++i) sums.push_back(std::make_unique<BegunSum>(*group, std::vector<Floats>{Floats(kFloats)}));
  sums.front()->done().wait();
  other.send(SIGSTOP);
  std::this_thread::sleep_for(200ms);
  const auto begin = std::chrono::steady_clock::now();
  group.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);                       // and not the timeout of the group
  EXPECT_EQ(lost.reason.get_future().wait_for(0s), std::future_status::timeout);  // it was not the sum that failed
}

INSTANTIATE_TEST_SUITE_P(, FaultOfARank, ::testing::Values(Way::kMemory, Way::kNetwork),
                         [](const auto& info) { return name_of(info.param); });

}  // namespace
}  // namespace sluice::comm::stopped_rank_test
