#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "base/process/free_port.h"
#include "base/process/subprocess.h"
#include "comm/parcels/parcels_over.h"
#include "comm/store.h"
#include "tests/comm/parcel_ranks.h"

// A rank as a process of its own (tests/programs/parcel_rank.cpp), which is killed while parcels go between it and this one.
namespace sluice::comm::lost_parcel_rank_test {
namespace {

using engine::Parcel;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::kNeverSoLong;

constexpr int64_t kCredit = 4 << 20;
constexpr int64_t kBefore = 10, kAtOnce = 4;  // parcels that come before it is killed, and that are under way at a time

// But those of other tests, which may run at the same time.
std::vector<std::string> shared_memory_files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    std::string name = entry.path().filename();
    if (!name.starts_with("sluice-fuzz-")) names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return names;
}

class LostParcelRankFault : public ::testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void start(const std::string& wire, const std::string& does) {
    const int port = free_port();
    other_ = std::make_unique<Subprocess>(
        SubprocessOptions{.arguments = {SLUICE_PARCEL_RANK_PROGRAM, std::to_string(port), wire, does}});
    store_ = std::make_unique<Store>(JoinOptions{.rank = 0, .size = 2, .port = port});
    parcels_ =
        parcels_over(*store_, {.shares_memory = wire == "memory"}, [this](const std::exception_ptr& error) { hear(error); });
  }

  pid_t pid_of_other() {
    Subprocess* const process = other_.get();
    const auto until = Subprocess::Clock::now() + kNeverSoLong;
    while (Subprocess::Clock::now() < until) {
      if (auto line = process->take_line()) return std::atoi(line->c_str() + std::string("ready ").size());
      Subprocess::exchange({&process, 1}, until);
    }
    return 0;
  }

  // The next one begins when this one has come.
  void take(int64_t number) {
    parcels_->receive(1, {"edge", 3, number}, kCredit,
                      [this, number](const Parcel&) { go_on(number, &LostParcelRankFault::take); });
  }
  void give(int64_t number) {
    parcels_->send(1, {"edge", 3, number}, {.header = {}, .columns = {engine::ColumnData(engine::DType::kFloat32, 700'000)}},
                   [this, number] { go_on(number, &LostParcelRankFault::give); });
  }
  void go_on(int64_t number, void (LostParcelRankFault::*begin)(int64_t)) {
    if (number < kBefore) came_.count();
    (this->*begin)(number + kAtOnce);
  }

  void hear(const std::exception_ptr& error) {
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& reason) {
      said_ = reason.what();
    }
    failed_.count();
  }

  Countdown came_{kBefore}, failed_{1};
  std::string said_;
  std::unique_ptr<Subprocess> other_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<engine::Parcels> parcels_;
};

TEST_P(LostParcelRankFault, IsNamedAndLeavesNothing) {
  const auto [wire, does] = GetParam();
  const std::vector<std::string> before = shared_memory_files();
  start(wire, does);
  const pid_t pid = pid_of_other();
  ASSERT_GT(pid, 0);
  for (int64_t i = 0; i < kAtOnce; ++i) does == std::string("sends") ? take(i) : give(i);
  ASSERT_TRUE(came_.came());
  ::kill(pid, SIGKILL);
  ASSERT_TRUE(failed_.came());
  EXPECT_THAT(said_, HasSubstr("rank 1 has closed its connection, and micro-batch "));
  EXPECT_THAT(said_, HasSubstr(" of iteration 3 on edge 'edge' was between it and this rank"));
  parcels_.reset();
  EXPECT_EQ(shared_memory_files(), before);
}

INSTANTIATE_TEST_SUITE_P(Wires, LostParcelRankFault,
                         ::testing::Combine(::testing::Values("memory", "stream"), ::testing::Values("sends", "receives")),
                         [](const auto& info) { return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param); });

}  // namespace
}  // namespace sluice::comm::lost_parcel_rank_test
