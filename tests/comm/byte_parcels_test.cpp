#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/numbers/crc32c.h"
#include "base/numbers/random.h"
#include "tests/comm/parcel_ranks.h"

// Parcels of bytes as they are, which come to a place that the receiver names.
namespace sluice::comm::byte_parcels_test {
namespace {

using testing::Countdown;
using ::testing::HasSubstr;
using testing::ParcelRanks;

constexpr size_t kBytes = 2'500'000;  // three chunks

const engine::ParcelKey kPiece{"actor", 7, 0, engine::ParcelOf::kWeights, 3};

std::shared_ptr<std::byte> random_bytes(uint64_t seed) {
  const std::shared_ptr<std::byte[]> bytes(new std::byte[kBytes]);
  RandomStream random(seed, 1);
  for (size_t i = 0; i < kBytes; ++i) bytes[i] = static_cast<std::byte>(random.next_bits());
  return {bytes, bytes.get()};
}

class ByteParcels : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

TEST_P(ByteParcels, ComeToTheirPlaceAndNowhereElse) {
  ParcelRanks ranks(2, GetParam());
  const auto bytes = random_bytes(1);
  const auto landing = ranks[1].new_landing(kBytes + 200);
  Countdown left(2);
  ranks[1].receive_bytes(0, kPiece, {landing, 100, kBytes}, [&](const ByteParcel& parcel) {
    EXPECT_EQ(parcel.bytes.get(), landing->memory.data() + 100);
    EXPECT_EQ(parcel.size, kBytes);
    EXPECT_EQ(parcel.checksums.size(), 3);
    left.count();
  });
  ranks[0].send_bytes(1, kPiece, {bytes, kBytes, {}}, left.callback());
  ASSERT_TRUE(left.came());
  EXPECT_EQ(std::memcmp(landing->memory.data() + 100, bytes.get(), kBytes), 0);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(landing->memory.data()[i], std::byte{0});
    EXPECT_EQ(landing->memory.data()[100 + kBytes + i], std::byte{0});
  }
  EXPECT_EQ(ranks[1].most_held(), 0);  // a landing is not of the pool
}

// Also from a block of their sender, where the receiver fetches them on one host.
TEST_P(ByteParcels, ComeOutOfABlockOfTheirSender) {
  ParcelRanks ranks(2, GetParam());
  const auto bytes = random_bytes(4);
  const auto from = ranks[0].new_landing(3 * kBytes), to = ranks[1].new_landing(kBytes);
  std::memcpy(from->memory.data() + 777, bytes.get(), kBytes);
  Countdown left(2);
  ranks[1].receive_bytes(0, kPiece, {to, 0, kBytes}, [&](const ByteParcel&) { left.count(); });
  ranks[0].send_bytes(1, kPiece, {{from, from->memory.data() + 777}, kBytes, {}, from}, left.callback());
  ASSERT_TRUE(left.came());
  EXPECT_EQ(std::memcmp(to->memory.data(), bytes.get(), kBytes), 0);
}

// Such bytes that are not what their checksums are of.
TEST_P(ByteParcels, ThatHaveChangedInTheirBlockAreNamed) {
  ParcelRanks ranks(2, GetParam());
  const auto from = ranks[0].new_landing(kBytes), to = ranks[1].new_landing(kBytes);
  const std::string_view zeros(reinterpret_cast<const char*>(from->memory.data()), kBytes);
  std::vector<uint32_t> checksums;
  for (uint32_t chunk = 0; chunk < 3; ++chunk) {
    const ChunkRange range = ChunkRange::of(chunk, kBytes);
    checksums.push_back(crc32c(zeros.substr(range.begin, range.size())));
  }
  from->memory.data()[kBytes - 1] = std::byte{1};
  ranks[1].receive_bytes(0, kPiece, {to, 0, kBytes}, [](const ByteParcel&) { ADD_FAILURE() << "it came"; });
  ranks[0].send_bytes(1, kPiece, {{from, from->memory.data()}, kBytes, checksums, from}, {});
  EXPECT_THAT(ranks.failure_of(1), HasSubstr("chunk 2 of piece 3 of bucket 0 of version 7 of 'actor' came damaged from rank 0"));
}

// More of them at once than a rank takes in one turn, to and fro.
TEST_P(ByteParcels, OfManyBlocksComeWhereBothFetchAtOnce) {
  constexpr int64_t kMany = 100;
  ParcelRanks ranks(2, GetParam());
  const auto bytes = random_bytes(5);
  Countdown left(2 * kMany);
  std::vector<std::shared_ptr<Block>> landings;
  for (int64_t i = 0; i < kMany; ++i) {
    for (int to = 0; to < 2; ++to) {
      const auto from = ranks[1 - to].new_landing(kBytes);
      std::memcpy(from->memory.data(), bytes.get(), kBytes);
      ranks[1 - to].send_bytes(to, {"actor", i, 0, engine::ParcelOf::kWeights}, {{from, from->memory.data()}, kBytes, {}, from},
                               {});
      landings.push_back(ranks[to].new_landing(kBytes));
      ranks[to].receive_bytes(1 - to, {"actor", i, 0, engine::ParcelOf::kWeights}, {landings.back(), 0, kBytes},
                              [&](const ByteParcel&) { left.count(); });
    }
  }
  ASSERT_TRUE(left.came());
  for (const auto& landing : landings) EXPECT_EQ(std::memcmp(landing->memory.data(), bytes.get(), kBytes), 0);
}

TEST_P(ByteParcels, OfAnotherSizeThanTheirPlaceFail) {
  ParcelRanks ranks(2, GetParam());
  ranks[1].receive_bytes(0, kPiece, {ranks[1].new_landing(kBytes), 0, kBytes},
                         [](const ByteParcel&) { ADD_FAILURE() << "it came"; });
  ranks[0].send_bytes(1, kPiece, {random_bytes(1), kBytes - 1, {}}, {});
  EXPECT_THAT(ranks.failure_of(1), HasSubstr("piece 3 of bucket 0 of version 7 of 'actor' does not fill its place"));
}

// Rank 1 hands on to rank 2 what it has from rank 0.
class HandingOn {
 public:
  explicit HandingOn(bool shares_memory) : ranks(3, shares_memory) {}

  void begin(const std::shared_ptr<std::byte>& bytes, const std::function<void(std::byte* here)>& between, const Landed& landed) {
    ranks[1].receive_bytes(0, kPiece, {first, 0, kBytes}, [=, this](const ByteParcel& parcel) {
      between(first->memory.data());
      ranks[1].send_bytes(2, kPiece, parcel, {});
    });
    ranks[2].receive_bytes(1, kPiece, {last, 0, kBytes}, landed);
    ranks[0].send_bytes(1, kPiece, {bytes, kBytes, {}}, {});
  }

  ParcelRanks ranks;
  const std::shared_ptr<Block> first = ranks[1].new_landing(kBytes), last = ranks[2].new_landing(kBytes);
};

TEST_P(ByteParcels, AreHandedOnWithTheirFirstChecksums) {
  HandingOn handing_on(GetParam());
  const auto bytes = random_bytes(2);
  Countdown left(1);
  handing_on.begin(
      bytes, [](std::byte*) {}, [&](const ByteParcel&) { left.count(); });
  ASSERT_TRUE(left.came());
  EXPECT_EQ(std::memcmp(handing_on.last->memory.data(), bytes.get(), kBytes), 0);
}

// A bit that flips in the memory of who hands on, after its own check.
TEST_P(ByteParcels, ThatWereDamagedWhereTheyWereHandedOnAreNamed) {
  HandingOn handing_on(GetParam());
  handing_on.begin(
      random_bytes(3), [](std::byte* here) { here[1'200'000] ^= std::byte{4}; },
      [](const ByteParcel&) { ADD_FAILURE() << "it came"; });
  EXPECT_THAT(handing_on.ranks.failure_of(2),
              HasSubstr("chunk 1 of piece 3 of bucket 0 of version 7 of 'actor' came damaged from rank 1"));
}

TEST_P(ByteParcels, WhatIsPostedComesInOrder) {
  ParcelRanks ranks(2, GetParam());
  Countdown left(100);
  std::vector<int> came;
  for (int i = 0; i < 100; ++i) {
    ranks[0].post([&, i] {
      came.push_back(i);
      left.count();
    });
  }
  ASSERT_TRUE(left.came());
  EXPECT_TRUE(std::ranges::is_sorted(came));
}

INSTANTIATE_TEST_SUITE_P(Wires, ByteParcels, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::byte_parcels_test
