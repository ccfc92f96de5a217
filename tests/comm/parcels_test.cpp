#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "tests/comm/parcel_ranks.h"

namespace sluice::comm::parcels_test {
namespace {

using engine::ColumnData;
using engine::DType;
using engine::Parcel;
using engine::ParcelKey;
using testing::are_equal;
using testing::column_of;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::kNeverSoLong;
using testing::ParcelRanks;
using testing::random_column;
using testing::random_parcel;

constexpr int64_t kEnough = 64 << 20;

// Over shared memory, and over TCP.
class Parcels : public ::testing::TestWithParam<bool> {
 protected:
  // From rank 0 to rank 1.
  Parcel brought(ParcelRanks& ranks, const ParcelKey& key, const Parcel& parcel) {
    const auto came = std::make_shared<std::promise<Parcel>>();
    auto future = came->get_future();
    ranks[1].receive(0, key, credit_bytes(parcel), [came](Parcel here) { came->set_value(std::move(here)); });
    ranks[0].send(1, key, parcel, {});
    if (future.wait_for(kNeverSoLong) == std::future_status::ready) return future.get();
    ADD_FAILURE() << "nothing came";
    return {};
  }
};

TEST_P(Parcels, ComeAsTheyWereSent) {
  ParcelRanks ranks(2, GetParam());
  for (uint64_t seed = 0; seed < 200; ++seed) {
    RandomStream random(seed, 1);
    const Parcel parcel = random_parcel(random, seed % 10 == 0 ? 300'000 : 2000);
    EXPECT_TRUE(are_equal(brought(ranks, {"edge", 1, static_cast<int64_t>(seed)}, parcel), parcel)) << "seed " << seed;
  }
}

TEST_P(Parcels, OfNothingCome) {
  ParcelRanks ranks(2, GetParam());
  const std::vector<Parcel> parcels{
      {},
      {.header = "only this", .columns = {}},
      {.header = {}, .columns = {ColumnData(DType::kFloat32, 0), ColumnData(DType::kString, 0), ColumnData(DType::kInt64, 0)}},
      {.header = {}, .columns = {ColumnData(DType::kString, 3), ColumnData(DType::kUint8, 1), ColumnData(DType::kUint8, 0)}}};
  for (size_t i = 0; i < parcels.size(); ++i)
    EXPECT_TRUE(are_equal(brought(ranks, {"edge", 0, static_cast<int64_t>(i)}, parcels[i]), parcels[i])) << i;
}

TEST_P(Parcels, OfLargeAndOfManyStringsCome) {
  ParcelRanks ranks(2, GetParam());
  std::vector<std::string> many;
  for (int i = 0; i < 100'000; ++i) many.push_back(std::to_string(i));
  const Parcel parcel{.header = std::string(Parcel::kMostHeader, 'h'),
                      .columns = {column_of<std::string>({std::string(5 << 20, 'a'), "", std::string(3 << 20, 'b')}),
                                  column_of(many), column_of<std::string>({"", "", ""})}};
  EXPECT_TRUE(are_equal(brought(ranks, {"edge", 0, 0}, parcel), parcel));
}

TEST_P(Parcels, ComeInAnyOrderOfOffersAndGrants) {
  for (uint64_t seed = 0; seed < 25; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, 2);
    const int size = 2 + static_cast<int>(random.below(3));
    constexpr int64_t kEach = 8;  // parcels of one rank for another
    std::map<std::pair<int, int>, std::vector<Parcel>> parcels;
    std::vector<std::vector<std::function<void(ParcelRanks&)>>> calls(static_cast<size_t>(size));  // by rank
    Countdown left(2 * size * (size - 1) * kEach);
    for (int from = 0; from < size; ++from) {
      for (int to = 0; to < size; ++to) {
        for (int64_t i = 0; i < kEach && from != to; ++i) {
          const Parcel parcel = random_parcel(random, random.below(20) == 0 ? 300'000 : 500);
          const ParcelKey key{"edge", static_cast<int64_t>(seed), i};
          calls[static_cast<size_t>(from)].push_back(
              [=, &left](ParcelRanks& ranks) { ranks[from].send(to, key, parcel, left.callback()); });
          calls[static_cast<size_t>(to)].push_back([=, &left](ParcelRanks& ranks) {
            ranks[to].receive(from, key, credit_bytes(parcel), [=, &left](const Parcel& here) {
              EXPECT_TRUE(are_equal(here, parcel));
              left.count();
            });
          });
        }
      }
    }
    ParcelRanks ranks(size, GetParam());
    testing::in_threads(size, [&](int rank) {
      auto& own = calls[static_cast<size_t>(rank)];
      RandomStream order(seed, 3, static_cast<uint32_t>(rank));
      for (size_t i = own.size(); i > 1; --i) std::swap(own[i - 1], own[order.below(i)]);
      for (const auto& call : own) call(ranks);
    });
    ASSERT_TRUE(left.came());
    EXPECT_EQ(ranks.failures(), std::vector<std::string>(static_cast<size_t>(size)));
  }
}

// Each rank grants the next parcel when the one before has come, and offers everything at first.
TEST_P(Parcels, ComeOneByOneWhereTheyAreGrantedSo) {
  constexpr int kRanks = 3;
  constexpr int64_t kCount = 20;
  ParcelRanks ranks(kRanks, GetParam());
  Countdown left(kRanks * kCount);
  const Parcel parcel{.header = {}, .columns = {ColumnData(DType::kFloat32, 400'000)}};
  std::vector<std::function<void(int64_t)>> grants(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    grants[static_cast<size_t>(rank)] = [&, rank](int64_t number) {
      ranks[rank].receive((rank + 1) % kRanks, {"ring", 0, number}, credit_bytes(parcel), [&, rank, number](const Parcel&) {
        left.count();
        if (number + 1 < kCount) grants[static_cast<size_t>(rank)](number + 1);
      });
    };
    for (int64_t i = kCount; i-- > 0;) ranks[rank].send((rank + kRanks - 1) % kRanks, {"ring", 0, i}, parcel, {});
    grants[static_cast<size_t>(rank)](0);
  }
  EXPECT_TRUE(left.came());
  for (int rank = 0; rank < kRanks; ++rank) EXPECT_LE(ranks[rank].most_held(), credit_bytes(parcel));
}

// Also where they are offered the other way round, when all grants are there.
TEST_P(Parcels, ComeInTheOrderOfTheirGrants) {
  constexpr int64_t kCount = 5;
  ParcelRanks ranks(2, GetParam());
  engine::Parcels &sender = ranks[0], &receiver = ranks[1];
  const Parcel parcel{.header = {}, .columns = {ColumnData(DType::kFloat32, 700'000)}};
  Countdown left(kCount);
  std::vector<int64_t> came;
  for (int64_t i = 0; i < kCount; ++i) {
    receiver.receive(0, {"edge", 0, i}, kEnough, [&, i](const Parcel&) {
      came.push_back(i);
      left.count();
    });
  }
  sender.receive(1, {"after the grants", 0, 0}, kEnough, [&](const Parcel&) {
    for (int64_t i = kCount; i-- > 0;) sender.send(1, {"edge", 0, i}, parcel, {});
  });
  receiver.send(0, {"after the grants", 0, 0}, {}, {});
  ASSERT_TRUE(left.came());
  EXPECT_THAT(came, ::testing::ElementsAre(0, 1, 2, 3, 4));
}

// However many there are, and whether they fill what is granted or not.
TEST_P(Parcels, HoldNoMoreThanIsGrantedAtATime) {
  constexpr int64_t kMost = 3 << 20, kGranted = 2;
  for (const int64_t count : {10, 40}) {
    ParcelRanks ranks(2, GetParam());
    Countdown left(count);
    std::function<void(int64_t)> grant = [&](int64_t number) {
      ranks[1].receive(0, {"edge", 0, number}, kMost, [&, number](const Parcel&) {
        left.count();
        if (number + kGranted < count) grant(number + kGranted);
      });
    };
    for (int64_t i = 0; i < kGranted; ++i) grant(i);
    for (int64_t i = 0; i < count; ++i) {
      const auto floats = static_cast<size_t>(1 + i % 3) * 200'000;
      ranks[0].send(1, {"edge", 0, i}, {.header = {}, .columns = {ColumnData(DType::kFloat32, floats)}}, {});
    }
    ASSERT_TRUE(left.came());
    EXPECT_LE(ranks[1].most_held(), kGranted * kMost);
    EXPECT_EQ(ranks[0].most_held(), 0);
  }
}

TEST_P(Parcels, StayWhenTheRanksHaveEnded) {
  RandomStream random(5, 5);
  const Parcel parcel{.header = "h",
                      .columns = {random_column(random, DType::kInt64, 5000), random_column(random, DType::kString, 50)}};
  Parcel here;
  {
    ParcelRanks ranks(2, GetParam());
    here = brought(ranks, {"edge", 0, 0}, parcel);
  }
  EXPECT_TRUE(are_equal(here, parcel));
}

TEST_P(Parcels, UseMemoryAgain) {
  ParcelRanks ranks(2, GetParam());
  const Parcel parcel{.header = {}, .columns = {ColumnData(DType::kUint8, 100'000)}};
  const uint8_t* first = brought(ranks, {"edge", 0, 0}, parcel).columns.front().entries<uint8_t>().data();
  EXPECT_EQ(brought(ranks, {"edge", 0, 1}, parcel).columns.front().entries<uint8_t>().data(), first);
}

TEST_P(Parcels, LargerThanTheirGrantFailByName) {
  ParcelRanks ranks(2, GetParam());
  ranks[1].receive(0, {"generate", 4, 7}, 4000, [](const Parcel&) { ADD_FAILURE() << "it came"; });
  ranks[0].send(1, {"generate", 4, 7}, {.header = {}, .columns = {ColumnData(DType::kFloat32, 1000)}},
                [] { ADD_FAILURE() << "done"; });
  EXPECT_THAT(ranks.failure_of(0),
              HasSubstr("micro-batch 7 of iteration 4 on edge 'generate' of rank 0 takes 4064 bytes, where rank 1 "
                        "has granted 4000"));
  EXPECT_THAT(ranks.failure_of(1),
              HasSubstr("rank 0 has closed its connection, and micro-batch 7 of iteration 4 on edge 'generate'"));
}

TEST_P(Parcels, OfOneKeyThatAreOfferedTwiceFailByName) {
  ParcelRanks ranks(2, GetParam());
  ranks[0].send(1, {"generate", 4, 7}, {}, {});
  ranks[0].send(1, {"generate", 4, 7}, {}, {});
  EXPECT_THAT(ranks.failure_of(0), HasSubstr("micro-batch 7 of iteration 4 on edge 'generate' is offered twice to rank 1"));
}

TEST_P(Parcels, EndWithoutFailureWhenNothingIsLeft) {
  ParcelRanks ranks(3, GetParam());
  brought(ranks, {"edge", 0, 0}, {.header = "last", .columns = {}});
  Countdown there(1);
  ranks[0].receive(2, {"edge", 0, 0}, 100, [&](const Parcel&) { there.count(); });
  ranks.end(1);
  ranks[2].send(0, {"edge", 0, 0}, {}, {});
  EXPECT_TRUE(there.came());
  EXPECT_EQ(ranks.failures(), std::vector<std::string>(3));
}

TEST_P(Parcels, ForARankThatHasEndedFail) {
  ParcelRanks ranks(2, GetParam());
  ranks.end(1);
  ranks[0].send(1, {"edge", 0, 0}, {}, {});
  EXPECT_THAT(ranks.failure_of(0), HasSubstr("rank 1 has ended, and micro-batch 0 of iteration 0 on edge 'edge'"));
}

TEST_P(Parcels, AreCounted) {
  ParcelRanks ranks(3, GetParam());
  const Parcel parcel{.header = "header", .columns = {ColumnData(DType::kFloat32, 1'000'000)}};
  ranks[0].send(1, {"edge", 0, 0}, parcel, {});
  Countdown there(1);
  ranks[1].receive(0, {"edge", 0, 0}, kEnough, [&](const Parcel&) { there.count(); });
  ASSERT_TRUE(there.came());
  const auto sent = ranks[0].traffic(), received = ranks[1].traffic();
  EXPECT_GT(sent[1].bytes_sent, 4'000'000);
  EXPECT_LT(sent[1].bytes_sent, 4'000'200);
  EXPECT_EQ(sent[1].bytes_sent, received[0].bytes_received);
  EXPECT_GE(sent[1].credit_wait_seconds, 0);
  EXPECT_EQ(sent[2].bytes_sent, 0);
  EXPECT_EQ(received[0].bytes_sent, 0);
}

std::string name_of_wire(const ::testing::TestParamInfo<bool>& info) { return info.param ? "SharedMemory" : "Tcp"; }

INSTANTIATE_TEST_SUITE_P(Wires, Parcels, ::testing::Bool(), name_of_wire);

}  // namespace
}  // namespace sluice::comm::parcels_test
