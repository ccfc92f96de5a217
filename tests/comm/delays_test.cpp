#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "base/numbers/float_range.h"
#include "base/numbers/random.h"
#include "base/process/free_port.h"
#include "comm/cluster.h"
#include "comm/gradient_group.h"
#include "comm/process_group.h"
#include "tests/comm/delayed_backend.h"
#include "tests/comm/delaying_relay.h"
#include "tests/comm/gradients.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::delays_test {
namespace {

using namespace std::chrono_literals;
using engine::Reductions;
using engine::World;
using testing::DelayedBackend;
using testing::DelayingRelay;
using testing::in_threads;

constexpr auto kLong = 60s;  // never reached unless something hangs
constexpr int kRanks = 3;

struct Done {
  std::shared_ptr<std::promise<void>> promise = std::make_shared<std::promise<void>>();

  std::function<void()> callback() const {
    return [promise = promise] { promise->set_value(); };
  }
  bool came() const { return promise->get_future().wait_for(kLong) == std::future_status::ready; }
};

// Sums, shares and gatherings of several models at once, each with the bits of one process: whatever comes late.
TEST(Delays, BetweenRanksChangeNoBit) {
  std::atomic<int64_t> delays = 0;
  for (uint64_t seed = 0; delays < 1000; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, 1);
    const int size = 2 + static_cast<int>(random.below(3)), slots = 2 * size;
    const auto count = static_cast<int64_t>(1 + random.below(300'000));
    const MadeUpGradient gradient{.seed = seed, .slots = slots, .count = count};
    const Floats expected = gradient.sum();
    const auto store = c10::make_intrusive<c10d::HashStore>();
    run_ranks(size, [&](World world) {
      const auto backend = std::make_shared<DelayedBackend>(connect_ranks(*store, "ranks", world),
                                                            100 * seed + static_cast<uint64_t>(world.rank), 2000, delays);
      GlooGradients group(
          backend, slots, [](const std::exception_ptr&) { ADD_FAILURE() << "it failed"; }, 1 << 20,
          reach_of(static_cast<Way>(seed % 3)));
      std::vector<Floats> parts = gradient.parts_of(world);
      std::vector<float*> pointers;
      for (Floats& part : parts) pointers.push_back(part.data());
      std::vector<int64_t> begins;
      for (int rank = 0; rank < size; ++rank) begins.push_back(owned_floats(count, rank, size).begin);
      begins.push_back(count);
      const Done added, brought;
      group.reduce_scatter(pointers, count, {}, added.callback());
      group.all_gather(pointers[0], begins, brought.callback());
      ASSERT_TRUE(added.came() && brought.came());
      EXPECT_EQ(std::memcmp(pointers[0], expected.data(), expected.size() * sizeof(float)), 0);
    });
  }
}

engine::Contribution number(double value) {
  engine::Part part{.name = "number", .kind = engine::Metric::kSum, .numbers = {}, .recorded = true};
  part.numbers.add(value);
  return {part};
}

// Everything that goes over the store: joining, what is agreed, mail, beats. Numbers that all add up come out, whatever is late.
TEST(Delays, OnTheWayToTheStoreLoseNothing) {
  int64_t delays = 0;
  for (uint64_t seed = 0; delays < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const int port = free_port();
    DelayingRelay relay(port, seed, /*most_us=*/3000);
    const auto said = in_threads(kRanks, [&](int rank) {
      Cluster cluster({.join = {.rank = rank, .size = kRanks, .port = rank == 0 ? port : relay.port(), .join_seconds = 30},
                       .beat_seconds = 0.05,
                       .dead_after_seconds = 10,
                       .agreed = {{"version", "1"}},
                       .sign = [] { return engine::RankSign{.doing = "testing"}; },
                       .failed = [](const std::exception_ptr&) { ADD_FAILURE() << "it failed"; },
                       .make_gradients = {}});
      for (int64_t iteration = 0; iteration < 10; ++iteration) {
        const auto sum = std::make_shared<std::promise<double>>();
        cluster.reductions().combine({.iteration = iteration}, number(rank + static_cast<double>(iteration)),
                                     [sum](const engine::Contribution& all) { sum->set_value(all.at(0).numbers.sum.value()); });
        auto future = sum->get_future();
        ASSERT_EQ(future.wait_for(kLong), std::future_status::ready);
        EXPECT_EQ(future.get(), 3.0 + 3.0 * static_cast<double>(iteration));
      }
      cluster.end(true);
    });
    EXPECT_EQ(said, std::vector<std::string>(kRanks));
    delays += relay.delays();
  }
}

}  // namespace
}  // namespace sluice::comm::delays_test
