#include "comm/gradient_group.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/numbers/random.h"
#include "comm/gradients_over.h"
#include "comm/link_lost.h"
#include "comm/process_group.h"
#include "tests/comm/damaging_backend.h"
#include "tests/comm/gradients.h"
#include "tests/temporary_folder.h"

namespace gloo {
// What Gloo throws where a message is not what it expects, which no header declares.
struct LikeEnforceNotMet : std::exception {
  const char* what() const noexcept override {
    return "[enforce fail at /pytorch/gloo/pair.cc:490] op.nwritten == op.preamble.nbytes. 9 vs 8 ";
  }
};
}  // namespace gloo

namespace sluice::comm::gradient_group_test {
namespace {

using namespace std::chrono_literals;
using engine::World;

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

GlooGradients::Failed never() {
  return [](std::exception_ptr reason) {
    try {
      std::rethrow_exception(std::move(reason));
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  };
}

// What is in `sum` when it is done: the tree's sum in the first part, nothing in the others.
void expect_sum(BegunSum& sum, const Floats& expected, const std::string& what) {
  ASSERT_EQ(sum.done().wait_for(60s), std::future_status::ready) << what;
  EXPECT_TRUE(same_bits(sum.parts().front(), expected)) << what;
  for (size_t part = 1; part < sum.parts().size(); ++part)
    EXPECT_TRUE(same_bits(sum.parts()[part], Floats(expected.size()))) << what;
}

// Else sums in another order would pass for right.
TEST(MadeUpGradient, HasOtherBitsInAnotherOrder) {
  const MadeUpGradient gradient{.slots = 4, .count = 1000};
  Floats in_turn(1000);
  for (int slot = 0; slot < 4; ++slot)
    for (int64_t i = 0; i < 1000; ++i) in_turn[static_cast<size_t>(i)] += gradient.at(slot, i);
  EXPECT_FALSE(same_bits(in_turn, gradient.sum()));
}

struct Spread {
  int size;
  int slots;
};

class SpreadGradients : public ::testing::TestWithParam<std::tuple<Spread, Way>> {};

TEST_P(SpreadGradients, HaveTheBitsOfOneProcess) {
  const auto [spread, way] = GetParam();
  const auto [size, slots] = spread;
  std::map<int64_t, Floats> expected;
  for (const int64_t count : {1, 15, 16384, 100003, (1 << 20) + 7})
    expected[count] = MadeUpGradient{.seed = 1, .slots = slots, .count = count}.sum();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  run_ranks(size, [&, slots = slots, way = way](World world) {
    GlooGradients group(connect_ranks(*store, "ranks", world), slots, never(),
                        /*most_staged=*/2 << 20, reach_of(way));  // so that rounds are many
    for (const auto& [count, floats] : expected) {
      BegunSum sum(group, MadeUpGradient{.seed = 1, .slots = slots, .count = count}.parts_of(world));
      expect_sum(sum, floats, "rank " + std::to_string(world.rank) + ", " + std::to_string(count) + " floats");
    }
  });
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Spread, Way>>& info) {
  const auto [spread, way] = info.param;
  return std::to_string(spread.slots) + "SlotsOn" + std::to_string(spread.size) + name_of(way);
}

constexpr std::array kSpreads{Spread{1, 1}, Spread{1, 2}, Spread{1, 6}, Spread{1, 8}, Spread{2, 2}, Spread{2, 4},
                              Spread{2, 6}, Spread{2, 8}, Spread{3, 3}, Spread{3, 6}, Spread{4, 4}, Spread{4, 8}};

INSTANTIATE_TEST_SUITE_P(, SpreadGradients,
                         ::testing::Combine(::testing::ValuesIn(kSpreads),
                                            ::testing::Values(Way::kMemory, Way::kNetwork, Way::kBoth)),
                         name_of);

// Sums of two models in the order that each rank happens to come to them; those of one model are in the same order.
using TwoModels = std::array<std::unique_ptr<GlooGradients>, 2>;

void sum_in_random_order(World world, TwoModels& models, const std::vector<MadeUpGradient>& gradients, RandomStream random) {
  std::vector<size_t> next(models.size());
  std::vector<std::unique_ptr<BegunSum>> sums(models.size() * gradients.size());
  for (size_t begun = 0; begun < sums.size(); ++begun) {
    size_t model = random.below(models.size());
    if (next[model] == gradients.size()) model = 1 - model;
    const size_t index = next[model]++;
    sums[2 * index + model] = std::make_unique<BegunSum>(*models[model], gradients[index].parts_of(world));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
  }
  for (size_t i = 0; i < sums.size(); ++i) expect_sum(*sums[i], gradients[i / 2].sum(), "sum " + std::to_string(i));
}

TEST(GradientGroup, CarriesOutSumsOfTwoModelsAtOnceInTheirOrder) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, 0);
    const int size = 2 + static_cast<int>(random.below(3));
    const int slots = size * (1 + static_cast<int>(random.below(3)));
    std::vector<MadeUpGradient> gradients(1 + random.below(4));
    for (auto& gradient : gradients)
      gradient = {.seed = seed, .slots = slots, .count = static_cast<int64_t>(random.below(100'000))};
    const auto store = c10::make_intrusive<c10d::HashStore>();
    run_ranks(size, [&](World world) {
      TwoModels models;
      for (size_t i = 0; i < models.size(); ++i) {
        auto ranks = connect_ranks(*store, "model " + std::to_string(i), world);
        models[i] = std::make_unique<GlooGradients>(std::move(ranks), slots, never());
      }
      sum_in_random_order(world, models, gradients, RandomStream(seed, 1, static_cast<uint32_t>(world.rank)));
    });
  }
}

// One that is begun, and one that waits after it: the others hear of it once, and nothing is done.
TEST(GradientGroup, FailsOnAllRanksWhenOneGoesAway) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 3, .count = 3'000'000};
  run_ranks(3, [&](World world) {
    std::promise<std::exception_ptr> reason;
    std::vector<std::unique_ptr<BegunSum>> sums;
    {
      GlooGradients group(connect_ranks(*store, "ranks", world), 3, [&](std::exception_ptr why) { reason.set_value(why); });
      if (world.rank == 2) return;
      for (int i = 0; i < 2; ++i) sums.push_back(std::make_unique<BegunSum>(group, gradient.parts_of(world)));
      auto failed = reason.get_future();
      ASSERT_EQ(failed.wait_for(60s), std::future_status::ready);
      EXPECT_THROW(std::rethrow_exception(failed.get()), std::exception);
      sums.push_back(std::make_unique<BegunSum>(group, gradient.parts_of(world)));
    }
    for (const auto& sum : sums) EXPECT_EQ(sum->done().wait_for(0s), std::future_status::timeout);
  });
}

// The other rank has dropped the iteration, and goes when it has saved: that is no failure, until somebody needs the sum.
TEST(GradientGroup, TellsAFailureWhenSomebodyWaits) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 2, .count = 100'000};
  run_ranks(2, [&](World world) {
    std::promise<void> told;
    auto failed = told.get_future();
    std::vector<Floats> parts = gradient.parts_of(world);
    const std::vector<float*> pointers{parts[0].data()};
    GlooGradients group(connect_ranks(*store, "ranks", world), 2, [&](const std::exception_ptr&) { told.set_value(); });
    if (world.rank == 1) return;
    group.all_reduce(pointers, gradient.count, nullptr);
    EXPECT_EQ(failed.wait_for(300ms), std::future_status::timeout);
    group.all_reduce(pointers, gradient.count, [] { ADD_FAILURE() << "it is not done"; });
    EXPECT_EQ(failed.wait_for(60s), std::future_status::ready);
  });
}

// How long ranks may take to connect says nothing of how long one computes.
TEST(GradientGroup, WaitsForARankThatComputesLongerThanAnyMayTakeToConnect) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 2, .count = 100'000};
  run_ranks(2, [&](World world) {
    GlooGradients group(connect_ranks(*store, "ranks", world, {.to_connect = 2s}), 2, never());
    if (world.rank == 1) std::this_thread::sleep_for(3s);
    BegunSum sum(group, gradient.parts_of(world));
    expect_sum(sum, gradient.sum(), "rank " + std::to_string(world.rank));
  });
}

// Over a network, which may hand on other bits than were sent: a part of a sum, and what is told of it first.
TEST(GradientGroup, NamesTheRankWhoseFloatsCameDamaged) {
  const MadeUpGradient gradient{.slots = 2, .count = 98'304};
  for (const int64_t damaged : {6, 49'152}) {
    SCOPED_TRACE(damaged);
    const auto store = c10::make_intrusive<c10d::HashStore>();
    std::promise<std::exception_ptr> reason;
    std::promise<void> told;
    run_ranks(2, [&](World world) {
      auto ranks = connect_ranks(*store, "ranks", world);
      if (world.rank == 0) ranks = std::make_shared<testing::DamagingBackend>(std::move(ranks), damaged);
      const auto failed = [&, world](std::exception_ptr why) {
        if (world.rank == 0) reason.set_value(std::move(why));
      };
      GlooGradients group(std::move(ranks), 2, failed, 64 << 20, reach_of(Way::kNetwork));
      BegunSum sum(group, gradient.parts_of(world));
      if (world.rank == 1) return told.get_future().wait();
      EXPECT_THAT(message_of<UserError>([&] { std::rethrow_exception(reason.get_future().get()); }),
                  ::testing::StartsWith("error: floats came damaged from rank 1: their checksum is "));
      told.set_value();
    });
  }
}

// After forget() the gradients are the caller's again.
TEST(GradientGroup, ForgetsWhatNobodyWaitsFor) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 2, .count = 3'000'000};
  std::promise<void> forgotten;
  run_ranks(2, [&](World world) {
    GlooGradients group(connect_ranks(*store, "ranks", world), 2, never());
    if (world.rank == 1) return forgotten.get_future().wait();
    {
      std::vector<Floats> parts = gradient.parts_of(world);
      group.all_reduce(std::vector<float*>{parts[0].data()}, gradient.count, nullptr);
      group.forget();
    }
    forgotten.set_value();
  });
}

// The other rank is there and does nothing.
TEST(GradientGroup, IsDestroyedWhileItWaitsForAnother) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 2, .count = 3'000'000};
  std::promise<void> destroyed;
  run_ranks(2, [&](World world) {
    auto group = std::make_unique<GlooGradients>(connect_ranks(*store, "ranks", world), 2, never());
    if (world.rank == 1) return destroyed.get_future().wait();
    BegunSum sum(*group, gradient.parts_of(world));
    std::this_thread::sleep_for(50ms);
    const auto begin = std::chrono::steady_clock::now();
    group.reset();
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 30s);  // and not the timeout of the group
    destroyed.set_value();
  });
}

// So that a run that has failed ends: what is under way, what waits after it, and what comes after.
TEST(GradientGroup, LetsGoOfWhatWaitsWhenTheRunIsOver) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const MadeUpGradient gradient{.slots = 2, .count = 3'000'000};
  std::promise<void> let_go;
  run_ranks(2, [&](World world) {
    GlooGradients group(connect_ranks(*store, "ranks", world), 2, never());
    if (world.rank == 1) return let_go.get_future().wait();
    std::vector<std::unique_ptr<BegunSum>> sums;
    for (int i = 0; i < 2; ++i) sums.push_back(std::make_unique<BegunSum>(group, gradient.parts_of(world)));
    std::this_thread::sleep_for(50ms);
    for (const auto& sum : sums) EXPECT_EQ(sum->done().wait_for(0s), std::future_status::timeout);
    group.abandon();
    sums.push_back(std::make_unique<BegunSum>(group, gradient.parts_of(world)));
    for (const auto& sum : sums) EXPECT_EQ(sum->done().wait_for(60s), std::future_status::ready);
    let_go.set_value();
  });
}

TEST(GradientGroup, TakesAPartForEachSubtree) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::promise<std::exception_ptr> reason;
  GlooGradients group(connect_ranks(*store, "ranks", {}), 1, [&](std::exception_ptr why) { reason.set_value(why); });
  BegunSum sum(group, {Floats(3), Floats(3)});
  EXPECT_THROW(std::rethrow_exception(reason.get_future().get()), InternalError);
}

TEST(ProcessGroup, ARankThatDoesNotComeIsTheUsersToMend) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  EXPECT_THAT(message_of<UserError>([&] {
                connect_ranks(*store, "ranks", {0, 2}, {.to_connect = 300ms});
              }),
              ::testing::StartsWith("error: rank 0 could not connect with the other 1 over '127.0.0.1'"));
}

TEST(ProcessGroup, AHostThatIsNotHereIsTheUsersToMend) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  EXPECT_THAT(message_of<UserError>([&] { connect_ranks(*store, "ranks", {}, {.host = "203.0.113.1"}); }),
              ::testing::StartsWith("error: this rank cannot listen at '203.0.113.1'"));
}

// Which Gloo calls a host that has no address.
TEST(ProcessGroup, ALimitOfDescriptorsIsNamedAsOne) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  const std::string message = message_of<UserError>([&] { connect_ranks(*store, "ranks", {}); });
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_THAT(message, ::testing::HasSubstr("ulimit -n"));
}

// What a rank says of its connections alone the heartbeat may know better; of what came damaged it does not.
TEST(FailureOfGradients, IsALostLinkWhereAConnectionBroke) {
  const auto said_of = [](const auto& error) { return failure_of_gradients("actor", std::make_exception_ptr(error)); };
  const auto lost = said_of(std::runtime_error("[/pytorch/gloo/pair.cc:534] Connection closed by peer"));
  const std::string which = "gradients or weights of model 'actor' could not be exchanged with the other ranks that train: ";
  try {
    std::rethrow_exception(lost);
  } catch (const LinkLost& error) {
    EXPECT_EQ(error.message(), which + "Connection closed by peer");
  }
  try {
    std::rethrow_exception(said_of(UserError("floats came damaged from rank 1")));
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), which + "floats came damaged from rank 1");
    EXPECT_EQ(dynamic_cast<const LinkLost*>(&error), nullptr);
  }
  try {
    std::rethrow_exception(said_of(gloo::LikeEnforceNotMet()));
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), which + "a message came damaged: op.nwritten == op.preamble.nbytes. 9 vs 8");
    EXPECT_EQ(dynamic_cast<const LinkLost*>(&error), nullptr);
  }
  EXPECT_THROW(std::rethrow_exception(said_of(InternalError("rank 0 began another one"))), InternalError);
}

}  // namespace
}  // namespace sluice::comm::gradient_group_test
