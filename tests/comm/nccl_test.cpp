#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"
#include "base/process/free_port.h"
#include "comm/nccl_exchange.h"
#include "comm/nccl_over.h"
#include "comm/store.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::nccl_test {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::HasSubstr;
using testing::in_threads;
using Piece = engine::DeviceExchange::Piece;

std::shared_ptr<const NcclLibrary> library() { return NcclLibrary::load(SLUICE_FAKE_NCCL); }

NcclLibrary::UniqueId new_id() {
  NcclLibrary::UniqueId id{};
  EXPECT_EQ(library()->make_id(&id), NcclLibrary::kDone);
  return id;
}

void* stream_of_last_piece() {
  void* const loaded = ::dlopen(SLUICE_FAKE_NCCL, RTLD_NOW | RTLD_NOLOAD);
  void* const stream = reinterpret_cast<void* (*)()>(::dlsym(loaded, "fake_nccl_stream"))();
  ::dlclose(loaded);
  return stream;
}

TEST(NcclLibrary, IsNotThereWhereThereIsNone) {
  EXPECT_EQ(NcclLibrary::load("libno-such-library.so"), nullptr);
  EXPECT_EQ(NcclLibrary::load("libc.so.6"), nullptr) << "it lacks all functions";
  EXPECT_NE(library(), nullptr);
}

float number_of(int from, int to, int round, int64_t place) {
  return static_cast<float>(1000000 * from + 10000 * to + 1000 * round + place % 1000);
}

// How much goes from a rank to another in a round; nothing, too.
int64_t count_of(int from, int to, int round) {
  return static_cast<int64_t>(RandomStream(static_cast<uint64_t>(round), static_cast<uint64_t>(8 * from + to)).below(400)) - 100;
}

TEST(NcclExchange, BringsEachPieceToItsRank) {
  constexpr int kRanks = 4;
  const NcclLibrary::UniqueId id = new_id();
  const auto said = in_threads(kRanks, [&](int rank) {
    NcclExchange devices(library(), id, {.rank = rank, .size = kRanks}, c10::kCPU);
    for (int round = 0; round < 30; ++round) {
      std::vector<std::vector<float>> out(kRanks), in(kRanks);
      std::vector<Piece> to, from;
      for (int other = 0; other < kRanks; ++other) {
        if (other == rank) continue;
        const auto floats = [](int64_t count) { return std::vector<float>(static_cast<size_t>(std::max<int64_t>(0, count))); };
        out[other] = floats(count_of(rank, other, round)), in[other] = floats(count_of(other, rank, round));
        for (size_t i = 0; i < out[other].size(); ++i) out[other][i] = number_of(rank, other, round, static_cast<int64_t>(i));
        // In two pieces, of which one may be empty.
        const auto half = [](const std::vector<float>& all) { return static_cast<int64_t>(all.size()) / 3; };
        const auto add = [&](std::vector<Piece>& pieces, std::vector<float>& all) {
          const auto count = static_cast<int64_t>(all.size());
          pieces.push_back({other, all.data(), half(all)});
          pieces.push_back({other, all.data() + half(all), count - half(all)});
        };
        add(to, out[other]), add(from, in[other]);
      }
      devices.exchange(to, from, &devices);
      EXPECT_EQ(stream_of_last_piece(), &devices);
      for (int other = 0; other < kRanks; ++other)
        for (size_t i = 0; i < in[other].size(); ++i)
          ASSERT_EQ(in[other][i], number_of(other, rank, round, static_cast<int64_t>(i)));
    }
  });
  EXPECT_THAT(said, Each(""));
}

TEST(NcclExchange, WhoeverWaitsForALostRankIsLetGo) {
  const NcclLibrary::UniqueId id = new_id();
  std::barrier joined(2);
  const auto said = in_threads(2, [&](int rank) {
    NcclExchange devices(library(), id, {.rank = rank, .size = 2}, c10::kCPU);
    joined.arrive_and_wait();
    if (rank == 1) return;  // and never gives anything
    std::vector<float> floats(3);
    const std::vector<Piece> from{{1, floats.data(), 3}};
    std::jthread heartbeat([&] {
      std::this_thread::sleep_for(50ms);
      NcclExchange& other = devices;
      other.abandon();
    });
    devices.exchange({}, from, nullptr);
  });
  EXPECT_THAT(said[0], HasSubstr("failed: internal error"));
  EXPECT_EQ(said[1], "");
}

TEST(NcclExchange, AfterItIsAbandonedNothingIsAsked) {
  NcclExchange devices(library(), new_id(), {}, c10::kCPU);
  devices.abandon();
  devices.abandon();
  EXPECT_THROW(devices.exchange({}, {}, nullptr), UserError);
}

// Through the store of a run; `lacks`: a rank that has no library.
std::vector<bool> connected(int ranks, int lacks) {
  const int port = free_port();
  std::barrier all_were_there(ranks);
  std::vector<char> has(static_cast<size_t>(ranks));
  const auto said = in_threads(ranks, [&](int rank) {
    const Store store({.rank = rank, .size = ranks, .port = port, .join_seconds = 30, .answer_seconds = 5});
    const std::unique_ptr<StoreConnection> connection = store.connect();
    const auto devices = nccl_over(*connection, "devices/actor", {.rank = rank, .size = ranks}, c10::kCPU,
                                   rank == lacks ? nullptr : library(), Clock::now() + 30s);
    has[static_cast<size_t>(rank)] = devices != nullptr;
    if (devices) {
      std::vector<float> mine{static_cast<float>(rank)}, other{-1};
      const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
      devices->exchange(std::vector<Piece>{{next, mine.data(), 1}}, std::vector<Piece>{{before, other.data(), 1}}, nullptr);
      EXPECT_EQ(other.front(), static_cast<float>(before));
    }
    all_were_there.arrive_and_wait();  // rank 0 serves as long
  });
  EXPECT_THAT(said, Each(""));
  return {has.begin(), has.end()};
}

TEST(NcclOver, ConnectsAllRanksOrNone) {
  EXPECT_THAT(connected(3, -1), Each(true));
  EXPECT_THAT(connected(3, 1), Each(false));
}

TEST(NcclOver, TellsWhichRankDoesNotCome) {
  const Store store({.rank = 0, .size = 1, .port = free_port(), .join_seconds = 30, .answer_seconds = 5});
  const auto connection = store.connect();
  try {
    nccl_over(*connection, "devices/actor", {.rank = 0, .size = 2}, c10::kCPU, library(), Clock::now() + 100ms);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("rank 1 did not say in time"));
  }
}

}  // namespace
}  // namespace sluice::comm::nccl_test
