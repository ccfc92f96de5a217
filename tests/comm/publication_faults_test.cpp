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

#include "base/random.h"
#include "tests/comm/publishing_ranks.h"

// Publications on ranks that are slow, in any order, and over wires that flip bits.
namespace sluice::comm {
namespace {

using engine::Landing;
using testing::bytes_of;
using testing::Countdown;
using ::testing::HasSubstr;
using testing::is_version;
using testing::layout_of;
using testing::ParcelRanks;
using testing::PublishingRanks;

class FaultsOfPublications : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

// Flips a bit of one chunk of weights, behind so many others from this sender.
class FlipWeights {
 public:
  FlipWeights(int sender, int behind, uint64_t bit) : sender_(sender), bit_(bit), left_(behind) {}

  OnTheWay hook() {
    return [this](const ChunkName& name, std::span<std::byte> bytes) {
      const bool is_of_weights = name.key.of == engine::ParcelOf::kWeights && name.chunk != Message::kHeadAsChunk;
      if (!is_of_weights || name.sender != sender_ || left_-- != 0) return;
      const uint64_t bit = bit_ % (8 * bytes.size());
      bytes[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
      const std::lock_guard lock(mutex_);
      name_ = "chunk " + std::to_string(name.chunk) + " of " + engine::text_of(name.key) + " came damaged from rank " +
              std::to_string(name.sender);
    };
  }

  /// As it is to be told; empty: none yet.
  std::string name() {
    const std::lock_guard lock(mutex_);
    return name_;
  }

 private:
  const int sender_;
  const uint64_t bit_;
  std::atomic<int> left_;
  std::mutex mutex_;  // of name_
  std::string name_;
};

// From the owner (rank 0), and from a receiver that hands on (rank 1).
TEST_P(FaultsOfPublications, FlippedBitsAreNamedAndOpenNothing) {
  for (int i = 0; i < 100; ++i) {
    SCOPED_TRACE(i);
    RandomStream random(static_cast<uint64_t>(i), 1);
    FlipWeights flip(i % 2, static_cast<int>(random.below(2)), random.next_bits());
    PublishingRanks ranks(3, GetParam(), layout_of(3, 1, 2, 200'000, 2, 0), true, {.on_the_way = flip.hook()});
    for (int rank = 1; rank < 3; ++rank) ranks[rank].receive(0, ranks[rank].new_landing());
    ranks.offer(0, 0);
    for (int rank = 0; rank < 3; ++rank) EXPECT_NE(ranks.parcels().failure_of(rank), "");
    ASSERT_NE(flip.name(), "");
    EXPECT_THAT(ranks.parcels().failures(), ::testing::Contains(HasSubstr(flip.name())));
    for (int rank = 0; rank < 3; ++rank) EXPECT_TRUE(ranks.happened(rank).opened.empty());
  }
}

TEST_P(FaultsOfPublications, DamagedChunksComeAgainWhereThatIsAskedFor) {
  FlipWeights flip(1, 0, 12345);
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

// Ranks that each call what is theirs in an order of their own.
class RandomCalls {
 public:
  static constexpr int64_t kVersions = 3;

  RandomCalls(uint64_t seed, bool shares_memory)
      : seed_(seed),
        random_(seed, 2),
        owners_(1 + static_cast<int>(random_.below(4))),
        receivers_(1 + static_cast<int>(random_.below(4))),
        size_(std::max(owners_, receivers_) + static_cast<int>(random_.below(2))),
        plan_(layout_of(size_, owners_, receivers_, 1 + random_.below(100'000), 1 + random_.below(3), random_.below(3000))),
        opened_(std::ssize(plan_.ranks()) * kVersions),
        parcels_(size_, shares_memory),
        landings_(static_cast<size_t>(size_)),
        publications_(static_cast<size_t>(size_)) {
    for (int rank = 0; rank < size_; ++rank) {
      const auto landed = [this, rank](int64_t version, uint32_t) {
        ++acknowledged_[static_cast<size_t>(version)];
        publications_[static_cast<size_t>(rank)]->acknowledge(version);
      };
      const auto opened = [this](const engine::PublishedVersion& version) {
        if (acknowledged_[static_cast<size_t>(version.version)] < receivers_) ++early_;
        opened_.count();
      };
      auto& own = publications_[static_cast<size_t>(rank)];
      own = std::make_unique<DirectPublication>(parcels_[rank], plan_.layout(),
                                                engine::Publication::Events{.landed = landed, .opened = opened});
      for (int64_t version = 0; plan_.is_receiver(rank) && version < kVersions; ++version)
        landings_[static_cast<size_t>(rank)].push_back(own->new_landing());
    }
  }
  ~RandomCalls() { publications_.clear(); }

  void call() {
    testing::in_threads(size_, [&](int rank) {
      std::vector<std::function<void()>> calls = calls_of(rank);
      RandomStream order(seed_, 3, static_cast<uint32_t>(rank));
      for (size_t i = calls.size(); i > 1; --i) std::swap(calls[i - 1], calls[order.below(i)]);
      for (const auto& call : calls) {
        if (order.below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(order.below(500)));
        call();
      }
    });
  }

  void expect_all_well() {
    ASSERT_TRUE(opened_.came());
    EXPECT_EQ(early_, 0) << "opened before all had acknowledged";
    EXPECT_EQ(parcels_.failures(), std::vector<std::string>(static_cast<size_t>(size_)));
    for (const auto& own : landings_)
      for (int64_t version = 0; version < std::ssize(own); ++version)
        EXPECT_TRUE(is_version(own[static_cast<size_t>(version)]->bytes(), version)) << "version " << version;
  }

 private:
  // A receiver names its landings in the order of versions, whenever it does.
  std::vector<std::function<void()>> calls_of(int rank) {
    std::vector<std::function<void()>> calls;
    DirectPublication& own = *publications_[static_cast<size_t>(rank)];
    const auto next = std::make_shared<int64_t>(0);
    for (int64_t version = 0; version < kVersions; ++version) {
      for (const auto& bucket : plan_.layout().buckets)
        for (const engine::OwnedBytes& owned : bucket)
          if (owned.owner == rank)
            calls.push_back([&own, version, owned] { own.offer(version, owned.range, bytes_of(version, owned.range)); });
      if (!plan_.is_receiver(rank)) continue;
      calls.push_back([this, rank, &own, next] {
        own.receive(*next, landings_[static_cast<size_t>(rank)][static_cast<size_t>(*next)]);
        ++*next;
      });
    }
    return calls;
  }

  const uint64_t seed_;
  RandomStream random_;
  const int owners_, receivers_, size_;
  const PublicationPlan plan_;
  std::array<std::atomic<int>, kVersions> acknowledged_{};
  std::atomic<int64_t> early_ = 0;
  Countdown opened_;
  ParcelRanks parcels_;
  std::vector<std::vector<std::shared_ptr<Landing>>> landings_;
  std::vector<std::unique_ptr<DirectPublication>> publications_;
};

TEST_P(FaultsOfPublications, AnyOrderOfCallsOpensAllVersions) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomCalls calls(seed, GetParam());
    calls.call();
    calls.expect_all_well();
    if (HasFatalFailure()) return;
  }
}

// A rank that goes at any moment; a test that hangs has failed.
TEST_P(FaultsOfPublications, EndAtAnyMomentWithoutWaiting) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream random(seed, 4);
    PublishingRanks ranks(4, GetParam(), layout_of(4, 2, 3, 800'000, 3, 0));
    for (int64_t version = 0; version < 3; ++version) {
      for (int rank = 0; rank < 4; ++rank) {
        ranks.offer(rank, version);
        if (ranks.receives(rank)) ranks[rank].receive(version, ranks[rank].new_landing());
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    const int rank = static_cast<int>(random.below(4));
    random.below(2) == 0 ? ranks.parcels()[rank].close() : ranks.parcels()[rank].abandon();
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, FaultsOfPublications, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm
