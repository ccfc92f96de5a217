#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>

#include "base/numbers/random.h"
#include "comm/parcels/message.h"
#include "tests/comm/parcel_ranks.h"

namespace sluice::comm::parcel_damage_test {
namespace {

using engine::ColumnData;
using engine::DType;
using engine::Parcel;
using engine::ParcelKey;
using testing::are_equal;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::ParcelRanks;
using testing::random_column;

constexpr int kFlips = 500;  // over each wire

// Over shared memory, and over TCP.
class DamagedParcels : public ::testing::TestWithParam<bool> {};

// Flips one bit of one chunk, as often as it comes up to `times`.
class Flip {
 public:
  Flip(uint32_t chunk, uint64_t bit, int times) : chunk_(chunk), bit_(bit), left_(times) {}

  OnTheWay hook() {
    return [this](const ChunkName& name, std::span<std::byte> bytes) {
      if (name.chunk != chunk_ || left_ == 0) return;
      --left_;
      const uint64_t bit = bit_ % (8 * bytes.size());
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    };
  }

 private:
  const uint32_t chunk_;
  const uint64_t bit_;
  std::atomic<int> left_;
};

std::string name_of(uint32_t chunk) { return chunk == Message::kHeadAsChunk ? "the header" : "chunk " + std::to_string(chunk); }

// Of 1 MiB and a bit, so that there are two chunks; the other one is the header.
Parcel parcel_of(RandomStream& random) {
  return {.header = "header", .columns = {random_column(random, DType::kUint8, 50 + ChunkRange::kBytes)}};
}

uint32_t random_chunk(RandomStream& random) {
  const auto chunk = static_cast<uint32_t>(random.below(3));
  return chunk == 2 ? Message::kHeadAsChunk : chunk;
}

TEST_P(DamagedParcels, AreNamed) {
  RandomStream random(1, 1);
  const Parcel parcel = parcel_of(random);
  for (int i = 0; i < kFlips; ++i) {
    const uint32_t chunk = random_chunk(random);
    Flip flip(chunk, uint64_t{random.next_bits()} << 3, 1);
    ParcelRanks ranks(2, GetParam(), {.on_the_way = flip.hook()});
    const ParcelKey key{"generate", 12, i};
    ranks[0].send(1, key, parcel, [] { ADD_FAILURE() << "done"; });
    ranks[1].receive(0, key, credit_bytes(parcel), [](const Parcel&) { ADD_FAILURE() << "it came"; });
    ASSERT_THAT(ranks.failure_of(1), HasSubstr(name_of(chunk) + " of micro-batch " + std::to_string(i) +
                                               " of iteration 12 on edge 'generate' came damaged from rank 0"));
    ASSERT_THAT(ranks.failure_of(0), HasSubstr("rank 1 has closed its connection"));
  }
}

TEST_P(DamagedParcels, AreSentAgainOnceWhereThatIsAskedFor) {
  RandomStream random(2, 1);
  const Parcel parcel = parcel_of(random);
  for (int i = 0; i < 30; ++i) {
    Flip flip(random_chunk(random), random.next_bits(), 1);
    ParcelRanks ranks(2, GetParam(), {.sends_again = true, .on_the_way = flip.hook()});
    Countdown left(2);
    ranks[0].send(1, {"edge", 0, i}, parcel, left.callback());
    ranks[1].receive(0, {"edge", 0, i}, credit_bytes(parcel), [&](const Parcel& here) {
      EXPECT_TRUE(are_equal(here, parcel));
      left.count();
    });
    ASSERT_TRUE(left.came());
    EXPECT_EQ(ranks[0].traffic()[1].chunks_sent_again, 1);
  }
}

TEST_P(DamagedParcels, FailTheSecondTime) {
  RandomStream random(3, 1);
  const Parcel parcel = parcel_of(random);
  Flip flip(1, 77, 2);
  ParcelRanks ranks(2, GetParam(), {.sends_again = true, .on_the_way = flip.hook()});
  ranks[0].send(1, {"edge", 0, 0}, parcel, {});
  ranks[1].receive(0, {"edge", 0, 0}, credit_bytes(parcel), [](const Parcel&) { ADD_FAILURE() << "it came"; });
  EXPECT_THAT(ranks.failure_of(1), HasSubstr("chunk 1 of micro-batch 0 of iteration 0 on edge 'edge' came damaged from rank 0"));
}

// More than any system has.
TEST_P(DamagedParcels, WithoutMemoryAreNamedToo) {
  ParcelRanks ranks(2, GetParam());
  ranks[1].receive(0, {"generate", 12, 7}, int64_t{1} << 60, [](const Parcel&) { ADD_FAILURE() << "it came"; });
  EXPECT_THAT(ranks.failure_of(1),
              ::testing::AllOf(HasSubstr("no memory for micro-batch 7 of iteration 12 on edge 'generate' of rank 0"),
                               HasSubstr("the system gives no")));
}

INSTANTIATE_TEST_SUITE_P(Wires, DamagedParcels, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::parcel_damage_test
