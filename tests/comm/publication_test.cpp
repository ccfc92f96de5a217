#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "tests/comm/publishing_ranks.h"

namespace sluice::comm::publication_test {
namespace {

using engine::Landing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::is_version;
using ::testing::IsEmpty;
using testing::layout_of;
using testing::PublishingRanks;

constexpr std::chrono::milliseconds kAWhile{20};  // in which something would happen that must not

class Publications : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

// By rank; nothing for who receives nothing.
std::vector<std::shared_ptr<Landing>> received(PublishingRanks& ranks) {
  std::vector<std::shared_ptr<Landing>> landings(static_cast<size_t>(ranks.size()));
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks.receives(rank)) continue;
    landings[static_cast<size_t>(rank)] = ranks[rank].new_landing();
    ranks[rank].receive(0, landings[static_cast<size_t>(rank)]);
  }
  return landings;
}

// All receivers hold version 0 bit for bit, and have told the same checksum of it.
void expect_landed(PublishingRanks& ranks, const std::vector<std::shared_ptr<Landing>>& landings) {
  std::optional<uint32_t> checksum;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks.receives(rank)) continue;
    EXPECT_TRUE(is_version(landings[static_cast<size_t>(rank)]->bytes(), 0)) << "rank " << rank;
    const uint32_t here = ranks.happened(rank).checksums.at(0);
    EXPECT_EQ(checksum.value_or(here), here) << "rank " << rank;
    checksum = here;
  }
}

TEST_P(Publications, LandBitForBitWhoeverOwnsAndReceives) {
  for (int owners = 1; owners <= 4; ++owners) {
    for (int receivers = 1; receivers <= 4; ++receivers) {
      for (const int both : {0, 1, std::min(owners, receivers)}) {
        SCOPED_TRACE(std::to_string(owners) + " owners, " + std::to_string(receivers) + " receivers, " + std::to_string(both) +
                     " are both");
        const int size = owners + receivers - both;
        PublishingRanks ranks(size, GetParam(),
                              layout_of(size, owners, receivers, 300'000, 2, 1 + 77 * static_cast<size_t>(both)));
        for (int rank = 0; rank < size; rank += 2) ranks.offer(rank, 0);
        const auto landings = received(ranks);
        for (int rank = 1; rank < size; rank += 2) ranks.offer(rank, 0);
        ASSERT_TRUE(ranks.all_opened(1));
        expect_landed(ranks, landings);
        EXPECT_EQ(ranks.parcels().failures(), std::vector<std::string>(static_cast<size_t>(size)));
      }
    }
  }
}

// Of several pieces for a receiver; of the larger ones each is of several chunks.
TEST_P(Publications, OfLargeRangesLand) {
  for (const auto& [receivers, bytes] : {std::pair{1, size_t{80} << 20}, std::pair{3, size_t{32} << 20}}) {
    PublishingRanks ranks(2 + receivers, GetParam(), layout_of(2 + receivers, 2, receivers, bytes, 1, 12'345'678));
    const auto landings = received(ranks);
    for (int rank = 0; rank < 2; ++rank) ranks.offer(rank, 0);
    ASSERT_TRUE(ranks.all_opened(1));
    expect_landed(ranks, landings);
  }
}

// So time does not grow with the receivers.
TEST_P(Publications, SendEachByteOnceFromItsOwnerAndAboutOnceFromEachReceiver) {
  constexpr int kReceivers = 4;
  const auto layout = layout_of(1 + kReceivers, 1, kReceivers, size_t{4} << 20, 3, 0);
  PublishingRanks ranks(1 + kReceivers, GetParam(), layout);
  received(ranks);
  ranks.offer(0, 0);
  ASSERT_TRUE(ranks.all_opened(1));
  const auto bytes = static_cast<int64_t>(layout.bytes());
  EXPECT_EQ(ranks.happened(0).told[0].bytes_sent, bytes);
  for (int rank = 1; rank <= kReceivers; ++rank) {
    EXPECT_EQ(ranks.happened(rank).told[0].bytes_received, bytes);
    EXPECT_EQ(ranks.happened(rank).told[0].bytes_sent, bytes * (kReceivers - 1) / kReceivers);
  }
}

engine::PublicationLayout layout_of_one_host(int owners, int receivers, size_t bytes) {
  auto layout = layout_of(owners + receivers, owners, receivers, bytes, 1, 0);
  layout.hosts.clear();
  return layout;
}

// Where they share memory, as all of one host do, they have the landing in common, and each brings a part there.
TEST_P(Publications, LandOnceOnEachHost) {
  const auto layout = layout_of_one_host(1, 3, size_t{1} << 20);
  PublishingRanks ranks(4, GetParam(), layout);
  const auto landings = received(ranks);
  ranks.offer(0, 0);
  ASSERT_TRUE(ranks.all_opened(1));
  expect_landed(ranks, landings);
  const auto bytes = static_cast<int64_t>(layout.bytes());
  EXPECT_EQ(ranks.happened(0).told[0].bytes_sent, bytes);
  int64_t brought = 0;
  for (int rank = 1; rank < 4; ++rank) {
    EXPECT_EQ(ranks.happened(rank).told[0].bytes, bytes);
    brought += ranks.happened(rank).told[0].bytes_received;
    EXPECT_EQ(landings[static_cast<size_t>(rank)]->sharers(), GetParam() ? 3 : 1);
  }
  EXPECT_EQ(brought, GetParam() ? bytes : 3 * bytes);
  std::byte& first = landings[1]->bytes()[0];
  first ^= std::byte{1};
  for (int rank = 2; rank < 4; ++rank)
    EXPECT_EQ(landings[static_cast<size_t>(rank)]->bytes()[0] == first, GetParam()) << "rank " << rank;
}

// What one of them still reads stays as it is.
TEST_P(Publications, LandInCommonWhenAllHaveRoom) {
  PublishingRanks ranks(4, GetParam(), layout_of_one_host(1, 3, 400'000));
  const auto landings = received(ranks);
  for (int64_t version = 0; version < 2; ++version) ranks.offer(0, version);
  ASSERT_TRUE(ranks.all_opened(1));
  for (int rank = 1; rank < 3; ++rank) ranks[rank].receive(1, landings[static_cast<size_t>(rank)]);
  std::this_thread::sleep_for(kAWhile);
  EXPECT_TRUE(is_version(landings[3]->bytes(), 0));
  ranks[3].receive(1, landings[3]);
  ASSERT_TRUE(ranks.all_opened(2));
  for (int rank = 1; rank < 4; ++rank) EXPECT_TRUE(is_version(landings[static_cast<size_t>(rank)]->bytes(), 1));
}

// With more of them than pieces some bring nothing.
TEST_P(Publications, OfFewBytesLandInCommon) {
  PublishingRanks ranks(6, GetParam(), layout_of_one_host(2, 4, 3));
  for (int rank = 0; rank < 2; ++rank) ranks.offer(rank, 0);
  const auto landings = received(ranks);
  ASSERT_TRUE(ranks.all_opened(1));
  expect_landed(ranks, landings);
}

// Places are told apart by the order in which they were asked for. One of the ranks sees it first, and the other one that it is
// gone.
TEST(CommonLandings, ThatRanksNameInOtherOrdersAreRefused) {
  PublishingRanks ranks(3, true, layout_of_one_host(1, 2, 400'000));
  std::vector<std::vector<std::shared_ptr<Landing>>> rings(2);
  for (int i = 0; i < 2; ++i)
    for (int rank = 1; rank < 3; ++rank) rings[static_cast<size_t>(rank - 1)].push_back(ranks[rank].new_landing());
  ranks[1].receive(0, rings[0][0]);
  ranks[2].receive(0, rings[1][1]);
  EXPECT_THAT(ranks.parcels().failure_of(1) + ranks.parcels().failure_of(2),
              HasSubstr("version 0 of 'actor' is to land at several places of one host"));
}

TEST(CommonLandings, AreNotWaitedForWhenWhoMakesThemIsGone) {
  PublishingRanks ranks(3, true, layout_of_one_host(1, 2, 400'000));
  std::jthread lost([&ranks] {
    std::this_thread::sleep_for(kAWhile);
    ranks.parcels()[1].abandon();
  });
  try {
    ranks[2].new_landing();
    FAIL() << "nobody has lent it";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("the run has ended before rank 1 has lent the memory of place 0 of 'actor'"));
  }
}

TEST(CommonLandings, OutliveWhoMadeThem) {
  PublishingRanks ranks(3, true, layout_of_one_host(1, 2, 400'000));
  auto landings = received(ranks);
  ranks.offer(0, 0);
  ASSERT_TRUE(ranks.all_opened(1));
  landings[1].reset();
  for (const int rank : {0, 1}) {
    ranks.end(rank);
    ranks.parcels()[rank].close();
  }
  EXPECT_TRUE(is_version(landings[2]->bytes(), 0));
}

// Two landings of each receiver take the versions in turn.
TEST_P(Publications, OfSeveralVersionsOpenInOrderAndDoNotMix) {
  constexpr int64_t kVersions = 20, kReadable = 2;
  PublishingRanks ranks(4, GetParam(), layout_of(4, 2, 2, 200'000, 2, 5000));
  std::vector<std::vector<std::shared_ptr<Landing>>> rings(4);
  for (int rank = 2; rank < 4; ++rank) {
    for (int64_t version = 0; version < kReadable; ++version) {
      rings[static_cast<size_t>(rank)].push_back(ranks[rank].new_landing());
      ranks[rank].receive(version, rings[static_cast<size_t>(rank)].back());
    }
  }
  for (int64_t version = 0; version < kVersions; ++version)
    for (int rank = 0; rank < 2; ++rank) ranks.offer(rank, version);
  for (int64_t version = 0; version < kVersions; ++version) {
    for (int rank = 2; rank < 4; ++rank) {
      const auto& landing = rings[static_cast<size_t>(rank)][static_cast<size_t>(version % kReadable)];
      ASSERT_TRUE(ranks.opened(rank, static_cast<size_t>(version) + 1));
      ASSERT_TRUE(is_version(landing->bytes(), version)) << "version " << version << " at rank " << rank;
      if (version + kReadable < kVersions) ranks[rank].receive(version + kReadable, landing);
    }
  }
  ASSERT_TRUE(ranks.all_opened(kVersions));
  std::vector<int64_t> in_order(kVersions);
  std::iota(in_order.begin(), in_order.end(), 0);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(ranks.happened(rank).opened, in_order);
}

TEST_P(Publications, SendNothingToAReceiverThatHasNoPlaceYet) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 400'000, 1, 0));
  ranks.offer(0, 0);
  ranks[1].receive(0, ranks[1].new_landing());
  const auto until = std::chrono::steady_clock::now() + testing::kNeverSoLong;
  while (ranks.parcels()[1].traffic()[0].bytes_received == 0 && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(kAWhile);
  EXPECT_GT(ranks.parcels()[1].traffic()[0].bytes_received, 0);
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(ranks.happened(rank).opened, IsEmpty());
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.parcels()[2].traffic()[static_cast<size_t>(rank)].bytes_received, 0);
  ranks[2].receive(0, ranks[2].new_landing());
  ASSERT_TRUE(ranks.all_opened(1));
}

TEST_P(Publications, OpenNowhereBeforeAllHaveAcknowledged) {
  PublishingRanks ranks(4, GetParam(), layout_of(4, 2, 3, 100'000, 1, 0), false);
  for (int rank = 0; rank < 2; ++rank) ranks.offer(rank, 0);
  received(ranks);
  for (int rank = 1; rank < 4; ++rank) ASSERT_TRUE(ranks.landed(rank, 1));
  for (int rank = 1; rank < 4; ++rank) {
    std::this_thread::sleep_for(kAWhile);
    for (int other = 0; other < 4; ++other) EXPECT_THAT(ranks.happened(other).opened, IsEmpty());
    ranks[rank].acknowledge(0);
  }
  ASSERT_TRUE(ranks.all_opened(1));
  const engine::PublishedVersion of_owner = ranks.happened(0).told[0];
  EXPECT_GE(of_owner.slowest_seconds, 0);
  EXPECT_GE(of_owner.published_seconds, of_owner.slowest_seconds);
  for (int rank = 0; rank < 4; ++rank) {
    const engine::PublishedVersion told = ranks.happened(rank).told[0];
    EXPECT_EQ(told.slowest_receiver, 3);
    EXPECT_EQ(told.published_seconds, of_owner.published_seconds);
    EXPECT_EQ(told.slowest_seconds, of_owner.slowest_seconds);
  }
}

// The rate of a link is the fastest so far, so it never becomes less; who gets nothing knows none.
TEST_P(Publications, TellAReceiverHowFastBytesHaveCome) {
  constexpr int64_t kVersions = 5;
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 1'000'000, 2, 0));
  for (int64_t version = 0; version < kVersions; ++version) {
    for (int rank = 1; rank < 3; ++rank) ranks[rank].receive(version, ranks[rank].new_landing());
    ranks.offer(0, version);
    ASSERT_TRUE(ranks.all_opened(static_cast<size_t>(version) + 1));
  }
  for (int rank = 1; rank < 3; ++rank) {
    double before = 0;
    for (const engine::PublishedVersion& told : ranks.happened(rank).told) {
      EXPECT_GT(told.link_bytes_per_second, 0);
      EXPECT_GE(told.link_bytes_per_second, std::exchange(before, told.link_bytes_per_second));
    }
  }
  EXPECT_EQ(ranks.happened(0).told[0].link_bytes_per_second, 0);
}

TEST_P(Publications, OpenInOrderWhateverIsAcknowledgedFirst) {
  PublishingRanks ranks(2, GetParam(), layout_of(2, 1, 1, 100'000, 1, 0), false);
  for (int64_t version = 0; version < 2; ++version) {
    ranks.offer(0, version);
    ranks[1].receive(version, ranks[1].new_landing());
  }
  ASSERT_TRUE(ranks.landed(1, 2));
  ranks[1].acknowledge(1);
  std::this_thread::sleep_for(kAWhile);
  EXPECT_THAT(ranks.happened(0).opened, IsEmpty());
  ranks[1].acknowledge(0);
  ASSERT_TRUE(ranks.all_opened(2));
  EXPECT_THAT(ranks.happened(0).opened, ElementsAre(0, 1));
}

TEST_P(Publications, GoFromARankToItself) {
  PublishingRanks ranks(1, GetParam(), layout_of(1, 1, 1, 100'000, 2, 3));
  ranks.offer(0, 0);
  const auto landings = received(ranks);
  ASSERT_TRUE(ranks.opened(0, 1));
  expect_landed(ranks, landings);
}

TEST_P(Publications, KeepTheBytesOfAnOwnerNoLongerThanNeeded) {
  const auto layout = layout_of(2, 1, 1, 100'000, 1, 0);
  PublishingRanks ranks(2, GetParam(), layout);
  const auto bytes = testing::bytes_of(0, layout.buckets[0][0].range);
  ranks[0].offer(0, layout.buckets[0][0].range, bytes, {});
  EXPECT_GT(bytes.use_count(), 1);
  received(ranks);
  ASSERT_TRUE(ranks.all_opened(1));
  ranks.parcels()[0].close();  // no thread of it holds them for a moment more
  EXPECT_EQ(bytes.use_count(), 1);
}

TEST_P(Publications, KeepASourceNoLongerThanNeeded) {
  const auto layout = layout_of(3, 1, 2, 100'000, 1, 0);
  const engine::Range range = layout.buckets[0][0].range;
  PublishingRanks ranks(3, GetParam(), layout);
  std::shared_ptr<std::byte> source = ranks[0].new_source(range.size());
  const std::weak_ptr<std::byte> watched = source;
  std::ranges::copy(std::span(testing::bytes_of(0, range).get(), range.size()), source.get());
  ranks[0].offer(0, range, std::exchange(source, nullptr), {});
  EXPECT_FALSE(watched.expired());
  const auto landings = received(ranks);
  ASSERT_TRUE(ranks.all_opened(1));
  ranks.parcels()[0].close();
  EXPECT_TRUE(watched.expired());
  expect_landed(ranks, landings);
}

std::vector<uint32_t> checksums_of(const engine::Publication& publication, engine::Range range, const std::byte* bytes) {
  std::vector<uint32_t> checksums;
  for (const engine::Range& of : publication.stretches(range))
    checksums.push_back(crc32c({reinterpret_cast<const char*>(bytes) + (of.begin - range.begin), of.size()}));
  return checksums;
}

// Of whoever wrote the bytes, also where the owner receives too.
TEST_P(Publications, GoWithTheChecksumsOfWhoeverWroteThem) {
  const auto layout = layout_of(3, 2, 2, 3'000'000, 2, 0);
  PublishingRanks ranks(3, GetParam(), layout);
  for (const auto& bucket : layout.buckets) {
    for (const engine::OwnedBytes& owned : bucket) {
      const auto bytes = testing::bytes_of(0, owned.range);
      engine::Publication& publication = ranks[owned.owner];
      std::vector<uint32_t> checksums = checksums_of(publication, owned.range, bytes.get());
      publication.offer(0, owned.range, bytes, std::move(checksums));
    }
  }
  const auto landings = received(ranks);
  ASSERT_TRUE(ranks.all_opened(1));
  expect_landed(ranks, landings);
}

TEST_P(Publications, AreDamagedWhereTheChecksumsAreOfOtherBytes) {
  const auto layout = layout_of(2, 1, 1, 100'000, 1, 0);
  const engine::Range range = layout.buckets[0][0].range;
  PublishingRanks ranks(2, GetParam(), layout);
  const auto bytes = testing::bytes_of(0, range);
  std::vector<uint32_t> checksums = checksums_of(ranks[0], range, bytes.get());
  ++checksums.front();
  ranks[0].offer(0, range, bytes, std::move(checksums));
  received(ranks);
  EXPECT_THAT(ranks.parcels().failure_of(1), HasSubstr("came damaged from rank 0"));
}

TEST_P(Publications, RefuseWhatCannotBe) {
  const auto layout = layout_of(3, 1, 1, 100'000, 2, 0);
  PublishingRanks ranks(3, GetParam(), layout, false);
  const engine::Range own = layout.buckets[1][0].range;
  const auto bytes = testing::bytes_of(0, own);
  EXPECT_THROW(ranks[0].offer(0, {own.begin, own.end - 64}, bytes, {}), InternalError);
  EXPECT_THROW(ranks[2].offer(0, own, bytes, {}), InternalError);
  EXPECT_THROW(ranks[0].receive(0, ranks[0].new_landing()), InternalError);
  EXPECT_THROW(ranks[2].receive(1, ranks[2].new_landing()), InternalError);
  EXPECT_THROW(ranks[2].acknowledge(0), InternalError);
  EXPECT_THROW(ranks[0].offer(0, own, bytes, {1, 2}), InternalError);
  EXPECT_THROW(ranks[0].stretches({own.begin, own.end - 64}), InternalError);
  ranks[0].offer(0, own, bytes, {});
  EXPECT_THROW(ranks[0].offer(0, own, bytes, {}), InternalError);
}

TEST_P(Publications, EndWithoutFailureBetweenVersions) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 2, 2, 100'000, 2, 0));
  for (int rank = 0; rank < 2; ++rank) ranks.offer(rank, 0);
  received(ranks);
  ASSERT_TRUE(ranks.all_opened(1));
  for (int rank = 0; rank < 3; ++rank) ranks.parcels()[rank].close();
  EXPECT_EQ(ranks.parcels().failures(), std::vector<std::string>(3));
}

TEST_P(Publications, ToALostRankFailByName) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 100'000, 1, 0));
  ranks.offer(0, 4);
  testing::Countdown carried_out(1);
  ranks.parcels()[0].post(carried_out.callback());
  ASSERT_TRUE(carried_out.came());
  ranks.parcels()[1].abandon();
  EXPECT_THAT(ranks.parcels().failure_of(0),
              HasSubstr("rank 1 has closed its connection, and word that rank 1 has version 4 of 'actor' was between"));
}

// A receiver that has all of it and never acknowledges it.
TEST_P(Publications, ThatNobodyHasOpenedFailByNameWhereARankEnds) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 100'000, 1, 0), false);
  ranks.offer(0, 0);
  received(ranks);
  for (int rank = 1; rank < 3; ++rank) ASSERT_TRUE(ranks.landed(rank, 1));
  ranks[1].acknowledge(0);
  ranks.parcels()[2].close();
  EXPECT_THAT(ranks.parcels().failure_of(0), HasSubstr("word that rank 2 has version 0 of 'actor' was between"));
  ranks.end(0);
  ranks.parcels().end(0);
  EXPECT_NE(ranks.parcels().failure_of(1), "");  // as rank 0 has ended with that
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(ranks.happened(rank).opened, IsEmpty());
}

// Of a place for a version that nobody offers, too.
TEST_P(Publications, ThatNobodyHasOpenedAreForgottenWhereEarlyEndsAreExpected) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 100'000, 1, 0), false);
  ranks.offer(0, 0);
  received(ranks);
  for (int rank = 1; rank < 3; ++rank) {
    ASSERT_TRUE(ranks.landed(rank, 1));
    ranks[rank].receive(1, ranks[rank].new_landing());
  }
  for (int rank = 0; rank < 3; ++rank) ranks.parcels()[rank].expect_early_ends();
  for (int rank = 0; rank < 3; ++rank) ranks.parcels()[rank].close();
  EXPECT_EQ(ranks.parcels().failures(), std::vector<std::string>(3));
  for (int rank = 0; rank < 3; ++rank) EXPECT_THAT(ranks.happened(rank).opened, IsEmpty());
}

// The parcels go on without it, and its bytes to those that still need them.
TEST_P(Publications, ThatAreGoneTellNothingAndStillHandOn) {
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 400'000, 1, 0), false);
  received(ranks);
  ranks.end(1);
  ranks.offer(0, 0);
  ASSERT_TRUE(ranks.landed(2, 1));
  EXPECT_THAT(ranks.happened(1).landed, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Wires, Publications, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::publication_test
