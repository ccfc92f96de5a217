#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers/random.h"
#include "tests/comm/parcel_ranks.h"

// Parcels of ranks that give up, and of ranks that are slow.
namespace sluice::comm::parcel_ends_test {
namespace {

using engine::ColumnData;
using engine::DType;
using engine::Parcel;
using testing::are_equal;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::ParcelRanks;
using testing::random_parcel;

constexpr int kRanks = 3;

class EndsOfParcels : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

// All ranks offer and grant without end until one gives up at some moment; a test that hangs has failed.
TEST_P(EndsOfParcels, ComeAtAnyMomentWithoutWaiting) {
  for (uint64_t seed = 0; seed < 20; ++seed) {  // a rank that is destroyed may wait a second or two for the others
    RandomStream random(seed, 1);
    const auto moment = std::chrono::microseconds(random.below(3000));
    const bool is_destroyed = random.below(2) == 0;
    const Parcel parcel{.header = {}, .columns = {ColumnData(DType::kFloat32, 1 + random.below(500'000))}};
    ParcelRanks ranks(kRanks, GetParam());
    for (int rank = 0; rank < kRanks; ++rank) {
      for (int64_t i = 0; i < 6; ++i) {
        ranks[rank].send((rank + 1) % kRanks, {"ring", 0, i}, parcel, {});
        ranks[rank].receive((rank + 2) % kRanks, {"ring", 0, i}, credit_bytes(parcel), [](const Parcel&) {});
      }
    }
    std::this_thread::sleep_for(moment);
    is_destroyed ? ranks.end(0) : ranks[0].abandon();
  }
}

TEST_P(EndsOfParcels, DropWhatHasNotCome) {
  ParcelRanks ranks(2, GetParam());
  const auto dropped = std::make_shared<int>(0);
  ranks[0].send(1, {"edge", 0, 0}, {}, [dropped] { ADD_FAILURE() << "done"; });
  ranks[0].receive(1, {"edge", 0, 1}, 100, [dropped](const Parcel&) { ADD_FAILURE() << "it came"; });
  ranks[0].abandon();
  ranks[0].send(1, {"edge", 0, 2}, {}, [dropped] { ADD_FAILURE() << "done"; });
  ranks.failure_of(1);
  ranks.end(0);
  EXPECT_EQ(dropped.use_count(), 1);
  EXPECT_EQ(ranks.failures()[0], "");
}

TEST_P(EndsOfParcels, MayComeInACallbackWhichIsTheLast) {
  constexpr int64_t kCount = 200;
  ParcelRanks ranks(2, GetParam());
  engine::Parcels& receiver = ranks[1];
  std::atomic<int> came = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    ranks[0].send(1, {"edge", 0, i}, {}, {});
    receiver.receive(0, {"edge", 0, i}, 100, [&](const Parcel&) {
      ++came;
      receiver.abandon();
    });
  }
  ranks.failure_of(0);
  ranks.end(1);
  EXPECT_EQ(came, 1);
}

// A wire that is slow at random, and callers that are: nothing is lost, and no byte is another.
TEST_P(EndsOfParcels, AreReachedWhateverIsLate) {
  std::atomic<int64_t> delays = 0;
  std::mutex mutex;
  RandomStream lengths(9, 9);
  const auto pause = [&] {
    int64_t microseconds = 0;
    {
      const std::lock_guard lock(mutex);
      microseconds = static_cast<int64_t>(lengths.below(1000));
    }
    ++delays;
    std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
  };
  for (uint64_t seed = 0; delays < 1000; ++seed) {
    RandomStream random(seed, 2);
    std::vector<Parcel> parcels;
    for (int i = 0; i < 20; ++i) parcels.push_back(random_parcel(random, 100'000));
    ParcelRanks ranks(kRanks, GetParam(), {.on_the_way = [&](const ChunkName&, std::span<std::byte>) { pause(); }});
    Countdown left(2 * kRanks * std::ssize(parcels));
    testing::in_threads(kRanks, [&](int rank) {
      for (size_t i = 0; i < parcels.size(); ++i) {
        const Parcel& parcel = parcels[i];
        pause();
        ranks[rank].send((rank + 1) % kRanks, {"ring", 0, static_cast<int64_t>(i)}, parcel, left.callback());
        pause();
        ranks[rank].receive((rank + 2) % kRanks, {"ring", 0, static_cast<int64_t>(i)}, credit_bytes(parcel),
                            [&](const Parcel& here) {
                              pause();
                              EXPECT_TRUE(are_equal(here, parcel));
                              left.count();
                            });
      }
    });
    ASSERT_TRUE(left.came());
  }
}

// Offers that nobody grants, grants that nobody has anything for, and parcels whose chunks are on their way.
void leave_unfinished(ParcelRanks& ranks, int rank, const Parcel& large) {
  for (int other = 0; other < kRanks; ++other) {
    if (other == rank) continue;
    ranks[rank].send(other, {"offered", 0, 0}, large, {});
    ranks[rank].receive(other, {"granted", 0, 0}, 100, [](const Parcel&) { ADD_FAILURE() << "it came"; });
    for (int64_t i = 0; i < 3; ++i) {
      ranks[rank].send(other, {"both", 0, i}, large, {});
      ranks[rank].receive(other, {"both", 0, i}, credit_bytes(large), [](const Parcel&) {});
    }
  }
}

TEST_P(EndsOfParcels, ThatAreExpectedFailNobody) {
  const Parcel large{.header = {}, .columns = {ColumnData(DType::kFloat32, 3'000'000)}};
  for (uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(seed);
    ParcelRanks ranks(kRanks, GetParam());
    for (int rank = 0; rank < kRanks; ++rank) ranks[rank].expect_early_ends();
    testing::in_threads(kRanks, [&](int rank) {
      RandomStream random(seed, 3, static_cast<uint32_t>(rank));
      leave_unfinished(ranks, rank, large);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000)));
      ranks.end(rank);
    });
    EXPECT_EQ(ranks.failures(), std::vector<std::string>(kRanks));
  }
}

TEST_P(EndsOfParcels, ThatAreNotExpectedFailTheOthers) {
  ParcelRanks ranks(2, GetParam());
  ranks[1].expect_early_ends();
  ranks[0].send(1, {"offered", 0, 0}, {}, {});
  ranks.end(0);
  EXPECT_THAT(ranks.failure_of(1), HasSubstr("rank 0 has closed its connection"));
}

TEST_P(EndsOfParcels, ThatAreExpectedMustBeWell) {
  ParcelRanks ranks(2, GetParam());
  for (int rank = 0; rank < 2; ++rank) ranks[rank].expect_early_ends();
  ranks[0].abandon();
  EXPECT_THAT(ranks.failure_of(1), HasSubstr("rank 0 has closed its connection"));
}

// Another rank may not have heard yet that the run ends early.
TEST_P(EndsOfParcels, ThatOneRankExpectsFailNobody) {
  ParcelRanks ranks(2, GetParam());
  const auto dropped = std::make_shared<int>(0);
  const auto offer_and_grant = [&](int64_t number) {
    ranks[1].send(0, {"offered", 0, number}, {}, [dropped] { ADD_FAILURE() << "done"; });
    ranks[1].receive(0, {"granted", 0, number}, 100, [dropped](const Parcel&) { ADD_FAILURE() << "it came"; });
  };
  ranks[0].expect_early_ends();
  ranks[0].send(1, {"offered", 0, 0}, {}, {});
  offer_and_grant(0);
  ranks.end(0);
  offer_and_grant(1);
  offer_and_grant(1);
  ranks.end(1);
  EXPECT_EQ(dropped.use_count(), 1);
  EXPECT_EQ(ranks.failures(), std::vector<std::string>(2));
}

// Its goodbye did not say that it ends early: it had nothing left.
TEST_P(EndsOfParcels, OfARankThatHadNothingLeftFailNobodyWhereTheyAreExpected) {
  ParcelRanks ranks(2, GetParam());
  ranks.end(0);
  ranks[1].expect_early_ends();
  ranks[1].send(0, {"offered", 0, 0}, {}, [] { ADD_FAILURE() << "done"; });
  ranks.end(1);
  EXPECT_EQ(ranks.failures(), std::vector<std::string>(2));
}

// Word of it may still be on its way back.
TEST_P(EndsOfParcels, WhenAllHasComeFailNobody) {
  const Parcel parcel{.header = {}, .columns = {ColumnData(DType::kFloat32, 500'000)}};
  for (int i = 0; i < 50; ++i) {
    ParcelRanks ranks(2, GetParam());
    Countdown came(1);
    ranks[1].receive(0, {"edge", 0, 0}, credit_bytes(parcel), [&](const Parcel&) { came.count(); });
    ranks[0].send(1, {"edge", 0, 0}, parcel, {});
    ASSERT_TRUE(came.came());
    ranks[0].close();
    ranks.end(1);
    EXPECT_EQ(ranks.failures(), std::vector<std::string>(2));
  }
}

// Also while the other direction is full.
TEST_P(EndsOfParcels, TellOfWhatHasComeBefore) {
  const Parcel large{.header = {}, .columns = {ColumnData(DType::kFloat32, 3'000'000)}};
  for (int i = 0; i < 20; ++i) {
    ParcelRanks ranks(2, GetParam());
    for (int rank = 0; rank < 2; ++rank) ranks[rank].expect_early_ends();
    Countdown came(1), done(1);
    ranks[1].receive(0, {"forth", 0, 0}, credit_bytes(large), [](const Parcel&) {});
    ranks[0].send(1, {"forth", 0, 0}, large, {});
    ranks[0].receive(1, {"back", 0, 0}, 100, [&](const Parcel&) { came.count(); });
    ranks[1].send(0, {"back", 0, 0}, {}, done.callback());
    ASSERT_TRUE(came.came());
    ranks.end(0);
    ASSERT_TRUE(done.came());
    ranks.end(1);
    EXPECT_EQ(ranks.failures(), std::vector<std::string>(2));
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, EndsOfParcels, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::parcel_ends_test
