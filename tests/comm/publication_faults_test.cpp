#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers/random.h"
#include "tests/comm/publishing_ranks.h"

// Publications over wires that flip bits.
namespace sluice::comm::publication_faults_test {
namespace {

using engine::Landing;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::is_version;
using testing::layout_of;
using testing::ParcelRanks;
using testing::PublishingRanks;

class FaultsOfPublications : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

// Flips a bit of one chunk of weights, after so many others of all ranks.
class FlipWeights {
 public:
  FlipWeights(int64_t behind, uint64_t bit) : bit_(bit), left_(behind) {}

  OnTheWay hook() {
    return [this](const ChunkName& name, std::span<std::byte> bytes) {
      const bool is_of_weights = name.key.of == engine::ParcelOf::kWeights && name.chunk != Message::kHeadAsChunk;
      if (!is_of_weights || left_-- != 0) return;
      const uint64_t bit = bit_ % (8 * bytes.size());
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const std::lock_guard lock(mutex_);
      name_ = "chunk " + std::to_string(name.chunk) + " of piece " + std::to_string(name.key.piece) + " of bucket " +
              std::to_string(name.key.number) + " of version " + std::to_string(name.key.iteration) +
              " of 'actor' came damaged from rank " + std::to_string(name.sender);
    };
  }

  /// As it is to be told; empty: none yet.
  std::string name() {
    const std::lock_guard lock(mutex_);
    return name_;
  }

 private:
  const uint64_t bit_;
  std::atomic<int64_t> left_;
  std::mutex mutex_;  // of name_
  std::string name_;
};

// All of them are of one chunk.
int64_t pieces_on_the_way(const PublicationPlan& plan) {
  int64_t count = 0;
  for (const PublishedPiece& piece : plan.pieces())
    for (const int receiver : plan.layout().receivers)
      count += receiver != piece.owner && plan.bringer(piece, receiver) == receiver ? 1 : 0;
  return count;
}

// From owners, and from receivers that hand on; to landings of one rank, and to those of several. Where all have what they own
// nothing is on the way.
TEST_P(FaultsOfPublications, A1000Of1000FlippedBitsAreNamedAndOpenNothing) {
  constexpr int kRanks = 3;
  int flipped = 0, named = 0;
  for (uint64_t i = 0; flipped < 1000; ++i) {
    RandomStream random(i, 1);
    const int owners = 1 + static_cast<int>(random.below(3)), receivers = 2 + static_cast<int>(random.below(2));
    auto layout = layout_of(kRanks, owners, receivers, 1 + random.below(100'000), 1 + random.below(2), random.below(3000));
    if (GetParam() && random.below(2) == 0)
      layout.hosts = {0, static_cast<int>(random.below(2)), static_cast<int>(random.below(2))};
    layout.first_version = static_cast<int64_t>(random.below(1000));
    const int64_t pieces = pieces_on_the_way(PublicationPlan(layout));
    if (pieces == 0) continue;
    ++flipped;
    FlipWeights flip(static_cast<int64_t>(random.below(static_cast<uint64_t>(pieces))), random.next_bits());
    PublishingRanks ranks(kRanks, GetParam(), layout, true, {.on_the_way = flip.hook()});
    std::vector<std::shared_ptr<Landing>> landings(kRanks);
    for (size_t rank = 0; rank < kRanks; ++rank)
      if (ranks.receives(static_cast<int>(rank))) landings[rank] = ranks[static_cast<int>(rank)].new_landing();
    for (int rank = 0; rank < kRanks; ++rank) {
      if (landings[static_cast<size_t>(rank)]) ranks[rank].receive(layout.first_version, landings[static_cast<size_t>(rank)]);
      ranks.offer(rank, layout.first_version);
    }
    int tell_it = 0;  // the receiver of what was damaged; the others fail as it is lost
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string failure = ranks.parcels().failure_of(rank);
      ASSERT_NE(failure, "") << i;
      tell_it += !flip.name().empty() && failure.find(flip.name()) != std::string::npos ? 1 : 0;
      EXPECT_TRUE(ranks.happened(rank).opened.empty()) << i;
    }
    named += tell_it == 1 ? 1 : 0;
  }
  EXPECT_EQ(named, 1000);
}

TEST_P(FaultsOfPublications, DamagedChunksComeAgainWhereThatIsAskedFor) {
  FlipWeights flip(5, 12345);
  PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 200'000, 2, 0), true, {.sends_again = true, .on_the_way = flip.hook()});
  std::vector<std::shared_ptr<Landing>> landings;
  for (int rank = 1; rank < 3; ++rank) {
    landings.push_back(ranks[rank].new_landing());
    ranks[rank].receive(0, landings.back());
  }
  ranks.offer(0, 0);
  ASSERT_TRUE(ranks.all_opened(1));
  EXPECT_NE(flip.name(), "");
  for (const auto& landing : landings) EXPECT_TRUE(is_version(landing->bytes(), 0));
}

INSTANTIATE_TEST_SUITE_P(Wires, FaultsOfPublications, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::publication_faults_test
