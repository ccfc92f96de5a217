#include "comm/cluster.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <exception>
#include <future>
#include <latch>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process/free_port.h"
#include "comm/parcels/parcels_over.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::cluster_test {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using testing::in_threads;

ClusterOptions options(int rank, int size, int port) {
  return {.join = {.rank = rank, .size = size, .port = port, .join_seconds = 30}, .beat_seconds = .05, .dead_after_seconds = 2};
}

engine::Contribution ones() {
  engine::Part part{.name = "ranks", .recorded = true};
  part.numbers.sum.add(1);
  return {part};
}

TEST(Cluster, AddsTheNumbersOfItsRanksAndEnds) {
  const int port = free_port();
  std::atomic<int> failures = 0;
  const auto said = in_threads(3, [&](int rank) {
    ClusterOptions joins = options(rank, 3, port);
    joins.agreed = {{"version", "1.0"}, {"plan", "abc"}};
    joins.failed = [&](const std::exception_ptr&) { ++failures; };
    Cluster cluster(joins);
    const auto sum = std::make_shared<std::promise<double>>();
    cluster.reductions().combine({}, ones(),
                                 [sum](const engine::Contribution& all) { sum->set_value(all.front().numbers.sum.value()); });
    EXPECT_EQ(sum->get_future().get(), 3);
    cluster.end(true);
  });
  EXPECT_THAT(said, Each(""));
  EXPECT_EQ(failures, 0);
}

TEST(Cluster, NamesTheFirstDifference) {
  const int port = free_port();
  const auto said = in_threads(3, [&](int rank) {
    ClusterOptions joins = options(rank, 3, port);
    joins.agreed = {{"data", "d"}, {"plan", rank == 2 ? "abd" : "abc"}, {"version", "1"}};
    Cluster cluster(joins);
  });
  EXPECT_THAT(said, Each("ranks 0 and 2 differ in plan: \"abc\" and \"abd\""));
}

TEST(Cluster, ShowsOfLongValuesWhereTheyDiffer) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int rank) {
    ClusterOptions joins = options(rank, 2, port);
    joins.agreed = {{"plan", std::string(1000, 'a') + (rank == 0 ? "12" : "13") + std::string(1000, 'b')}};
    Cluster cluster(joins);
  });
  const std::string before = "...aaaaaaaaaaaaaaaaaaa1", behind = std::string(36, 'b') + "...";
  EXPECT_THAT(said,
              Each("ranks 0 and 1 differ in plan: \"" + before + "2" + behind + "\" and \"" + before + "3" + behind + "\""));
}

TEST(Cluster, NamesWhatARankLacks) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int rank) {
    ClusterOptions joins = options(rank, 2, port);
    if (rank == 0) joins.agreed = {{"plan", "abc"}};
    Cluster cluster(joins);
  });
  EXPECT_THAT(said, Each("ranks 0 and 1 differ in plan: \"abc\" and nothing"));
}

TEST(Cluster, ComparesWhatSomeRanksAloneHave) {
  const auto said_of = [](const std::vector<std::string>& values) {
    const int port = free_port();
    return in_threads(static_cast<int>(values.size()), [&](int rank) {
      ClusterOptions joins = options(rank, static_cast<int>(values.size()), port);
      joins.agreed = {{"data", values[static_cast<size_t>(rank)]}};
      Cluster cluster(joins);
      cluster.end(true);
    });
  };
  EXPECT_THAT(said_of({"", "d", "d"}), Each(""));
  EXPECT_THAT(said_of({"", "d", "e"}), Each("ranks 1 and 2 differ in data: \"d\" and \"e\""));
}

TEST(Cluster, TellsTheOthersWhyARankFailed) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int rank) {
    const auto failure = std::make_shared<std::promise<std::exception_ptr>>();
    ClusterOptions joins = options(rank, 2, port);
    joins.failed = [failure](std::exception_ptr error) { failure->set_value(std::move(error)); };
    Cluster cluster(joins);
    if (rank == 1) {
      cluster.end(false, "error: the disk is full");
      return;
    }
    std::rethrow_exception(failure->get_future().get());
  });
  EXPECT_THAT(said.front(), ::testing::MatchesRegex("rank 1 \\(host .*, pid [0-9]*\\) failed: the disk is full"));
}

class NoGradients final : public engine::GradientGroup {
 public:
  void all_reduce(std::span<float* const> /*parts*/, int64_t /*count*/, std::function<void()> done) override { done(); }
  void reduce_scatter(std::span<float* const> /*parts*/, int64_t /*count*/, Added /*added*/,
                      std::function<void()> done) override {
    done();
  }
  void exchange(std::vector<Stretch> /*out*/, std::vector<Stretch> /*in*/, std::function<void()> done) override { done(); }
  void all_gather(float* /*values*/, std::vector<int64_t> /*begins*/, std::function<void()> done) override { done(); }
};

TEST(Cluster, MakesTheGradientGroupOfAModelOnce) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int rank) {
    std::vector<std::string> made;
    ClusterOptions joins = options(rank, 2, port);
    joins.make_gradients = [&](const Store&, const std::string& model) {
      made.push_back(model);
      return std::make_unique<NoGradients>();
    };
    Cluster cluster(joins);
    engine::GradientGroup* const actor = cluster.reductions().gradients("actor");
    EXPECT_NE(actor, nullptr);
    EXPECT_NE(cluster.reductions().gradients("critic"), actor);
    EXPECT_EQ(cluster.reductions().gradients("actor"), actor);
    EXPECT_THAT(made, ::testing::ElementsAre("actor", "critic"));
    cluster.end(true);
  });
  EXPECT_THAT(said, Each(""));
}

TEST(Cluster, OfOneRankHasNeitherGradientGroupsNorParcels) {
  ClusterOptions alone = options(0, 1, free_port());
  alone.make_parcels = [](const Store&) -> std::unique_ptr<ParcelsWithoutLost> { throw InternalError("there is no other rank"); };
  Cluster cluster(alone);
  EXPECT_EQ(cluster.reductions().gradients("actor"), nullptr);
  EXPECT_EQ(cluster.parcels(), nullptr);
  cluster.end(true);
}

// Ranks that have parcels, and what these said when they failed.
class ClustersWithParcels : public ::testing::Test {
 protected:
  ClusterOptions with_parcels(int rank) {
    ClusterOptions joins = options(rank, kRanks, port_);
    joins.make_parcels = [this, rank](const Store& store) {
      const auto hear = [this, rank](const std::exception_ptr& error) {
        try {
          std::rethrow_exception(error);
        } catch (const std::exception& reason) {
          said_.at(static_cast<size_t>(rank)) = reason.what();
        }
        heard_.count_down();
      };
      return parcels_over(store, {.join_seconds = 30}, hear);
    };
    return joins;
  }

  // Each waits until the parcel has come.
  static void send(Cluster& cluster, int to) {
    std::promise<void> done;
    cluster.parcels()->send(to, {"edge", 0, 0}, {}, [&] { done.set_value(); });
    done.get_future().wait();
  }
  static void receive(Cluster& cluster, int from) {
    std::promise<void> came;
    cluster.parcels()->receive(from, {"edge", 0, 0}, 100, [&](const engine::Parcel&) { came.set_value(); });
    came.get_future().wait();
  }

  static constexpr int kRanks = 3;
  const int port_ = free_port();
  std::array<std::string, kRanks> said_;
  std::latch heard_{kRanks - 1};  // by those that fail
};

TEST_F(ClustersWithParcels, EndOneAfterTheOtherWithoutFailure) {
  std::promise<void> one_has_ended;
  const auto ended = one_has_ended.get_future().share();
  const auto said = in_threads(kRanks, [&](int rank) {
    Cluster cluster(with_parcels(rank));
    cluster.parcels();
    if (rank == 2) {
      cluster.end(true);
      one_has_ended.set_value();
      return;
    }
    ended.wait();
    rank == 0 ? send(cluster, 1) : receive(cluster, 0);
    cluster.end(true);
  });
  EXPECT_THAT(said, Each(""));
  EXPECT_THAT(said_, Each(""));
}

TEST_F(ClustersWithParcels, FailWhereOneEndsNotWell) {
  const auto said = in_threads(kRanks, [&](int rank) {
    Cluster cluster(with_parcels(rank));
    EXPECT_EQ(cluster.parcels(), cluster.parcels());
    if (rank == 2) cluster.end(false, "the disk is full");
    heard_.wait();
  });
  EXPECT_THAT(said, Each(""));
  EXPECT_THAT(said_, ::testing::ElementsAre(HasSubstr("closed its connection"), HasSubstr("closed its connection"), ""));
}

}  // namespace
}  // namespace sluice::comm::cluster_test
