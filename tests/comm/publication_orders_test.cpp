#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/numbers/random.h"
#include "tests/comm/publishing_ranks.h"

// Publications between ranks that call in any order, are slow, or go at any moment.
namespace sluice::comm::publication_orders_test {
namespace {

using engine::Landing;
using testing::Countdown;
using testing::is_version;
using testing::kNeverSoLong;
using testing::layout_of;
using testing::offered_bytes;
using testing::ParcelRanks;
using testing::PublishingRanks;

class OrdersOfPublications : public ::testing::TestWithParam<bool> {};  // over shared memory, and over TCP

using Calls = std::vector<std::function<void()>>;

// One after the other in an order of their own, with a pause before some.
void call_in_any_order(Calls calls, RandomStream& random) {
  for (size_t i = calls.size(); i > 1; --i) std::swap(calls[i - 1], calls[random.below(i)]);
  for (const auto& call : calls) {
    if (random.below(3) == 0) std::this_thread::sleep_for(std::chrono::microseconds(random.below(500)));
    call();
  }
}

// Ranks that each call what is theirs in an order of their own. Some acknowledge what has landed at once, others all of it at the
// end, in an order of their own.
class RandomCalls {
 public:
  static constexpr int64_t kVersions = 3;

  RandomCalls(uint64_t seed, bool shares_memory)
      : seed_(seed),
        random_(seed, 2),
        owners_(1 + static_cast<int>(random_.below(4))),
        receivers_(1 + static_cast<int>(random_.below(4))),
        size_(std::max(owners_, receivers_) + static_cast<int>(random_.below(2))),
        plan_(layout_on_hosts()),
        opened_(std::ssize(plan_.ranks()) * kVersions),
        parcels_(size_, shares_memory),
        landings_(static_cast<size_t>(size_)),
        publications_(static_cast<size_t>(size_)) {
    for (int rank = 0; rank < size_; ++rank) {
      landed_.push_back(std::make_unique<Countdown>(kVersions));
      acknowledges_at_once_.push_back(random_.below(2) == 0);
      add(rank);
    }
  }
  ~RandomCalls() { publications_.clear(); }

  void call() {
    testing::in_threads(size_, [&](int rank) {
      RandomStream order(seed_, 3, static_cast<uint32_t>(rank));
      call_in_any_order(calls_of(rank), order);
      if (!plan_.is_receiver(rank)) return;
      ASSERT_TRUE(landed_[static_cast<size_t>(rank)]->came());
      if (acknowledges_at_once_[static_cast<size_t>(rank)]) return;
      Calls acknowledgements;
      for (int64_t version = 0; version < kVersions; ++version)
        acknowledgements.emplace_back([this, rank, version] { acknowledge(rank, version); });
      call_in_any_order(std::move(acknowledgements), order);
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
  // Each rank on a host of its own, some on one, or as they are.
  engine::PublicationLayout layout_on_hosts() {
    auto layout = layout_of(size_, owners_, receivers_, 1 + random_.below(100'000), 1 + random_.below(3), random_.below(3000));
    const uint64_t hosts = random_.below(5);
    if (hosts == 0) layout.hosts.clear();
    for (int& host : layout.hosts)
      if (hosts < 4) host = static_cast<int>(random_.below(hosts));
    return layout;
  }

  void add(int rank) {
    const auto landed = [this, rank](int64_t version, uint32_t) {
      if (acknowledges_at_once_[static_cast<size_t>(rank)]) acknowledge(rank, version);
      landed_[static_cast<size_t>(rank)]->count();
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

  void acknowledge(int rank, int64_t version) {
    ++acknowledged_[static_cast<size_t>(version)];
    publications_[static_cast<size_t>(rank)]->acknowledge(version);
  }

  // A receiver names its landings in the order of versions, whenever it does.
  Calls calls_of(int rank) {
    Calls calls;
    DirectPublication& own = *publications_[static_cast<size_t>(rank)];
    const auto next = std::make_shared<int64_t>(0);
    for (int64_t version = 0; version < kVersions; ++version) {
      for (const auto& bucket : plan_.layout().buckets)
        for (const engine::OwnedBytes& owned : bucket)
          if (owned.owner == rank)
            calls.emplace_back(
                [&own, version, owned] { own.offer(version, owned.range, offered_bytes(own, version, owned.range), {}); });
      if (!plan_.is_receiver(rank)) continue;
      calls.emplace_back([this, rank, &own, next] {
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
  std::vector<std::unique_ptr<Countdown>> landed_;  // by rank, like the following
  std::vector<bool> acknowledges_at_once_;
  ParcelRanks parcels_;
  std::vector<std::vector<std::shared_ptr<Landing>>> landings_;
  std::vector<std::unique_ptr<DirectPublication>> publications_;
};

TEST_P(OrdersOfPublications, OpenAllVersionsAndNoneThatAReceiverHasNotAcknowledged) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    RandomCalls calls(seed, GetParam());
    calls.call();
    calls.expect_all_well();
    if (HasFatalFailure()) return;
  }
}

constexpr size_t kPublished = 3;  // versions

std::unique_ptr<PublishingRanks> ranks_that_publish(bool shares_memory) {
  auto ranks = std::make_unique<PublishingRanks>(4, shares_memory, layout_of(4, 2, 3, 800'000, 3, 0));
  for (int64_t version = 0; version < static_cast<int64_t>(kPublished); ++version) {
    for (int rank = 0; rank < 4; ++rank) {
      ranks->offer(rank, version);
      if (ranks->receives(rank)) (*ranks)[rank].receive(version, (*ranks)[rank].new_landing());
    }
  }
  return ranks;
}

// A rank that is lost at any moment: all others are told, and wait for nothing.
TEST_P(OrdersOfPublications, EndWhereARankIsLost) {
  for (uint64_t seed = 0; seed < 40; ++seed) {
    RandomStream random(seed, 4);
    const auto ranks = ranks_that_publish(GetParam());
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    const int lost = static_cast<int>(random.below(4));
    ranks->parcels()[lost].abandon();
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == lost) continue;
      EXPECT_THAT(ranks->parcels().failure_of(rank), ::testing::HasSubstr("has closed its connection")) << seed;
    }
  }
}

// As the process of a rank that has failed does: whoever waits for it is told, and else for nobody.
void end_those_that_failed(PublishingRanks& ranks) {
  const std::vector<std::string> failures = ranks.parcels().failures();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (failures[static_cast<size_t>(rank)].empty()) continue;
    ranks.end(rank);
    ranks.parcels().end(rank);
  }
}

// Waits for: one of the two. False: neither comes.
bool opens_all_or_fails(PublishingRanks& ranks, int rank) {
  for (const auto until = std::chrono::steady_clock::now() + kNeverSoLong; std::chrono::steady_clock::now() < until;) {
    const bool has_failed = !ranks.parcels().failures()[static_cast<size_t>(rank)].empty();
    if (has_failed || ranks.happened(rank).opened.size() == kPublished) return true;
    end_those_that_failed(ranks);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return false;
}

// A rank that leaves at any moment. Where all is open to it, that is nothing to the others; else they may fail by it.
TEST_P(OrdersOfPublications, EndWhereARankLeaves) {
  int through = 0, failed = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomStream random(seed, 5);
    const auto ranks = ranks_that_publish(GetParam());
    const int left = static_cast<int>(random.below(4));
    const uint64_t when = random.below(3);
    if (when == 0) ranks->opened(left, kPublished);
    if (when == 1) std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    const bool is_through = ranks->happened(left).opened.size() == kPublished;
    ranks->parcels()[left].close();
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == left) continue;
      EXPECT_TRUE(opens_all_or_fails(*ranks, rank)) << seed;
      EXPECT_TRUE(!is_through || ranks->opened(rank, kPublished)) << seed;
    }
    const bool has_failed = ranks->parcels().failures() != std::vector<std::string>(4);
    EXPECT_FALSE(is_through && has_failed) << seed;
    through += is_through ? 1 : 0;
    failed += has_failed ? 1 : 0;
  }
  EXPECT_GT(through, 0);
  EXPECT_GT(failed, 0);
}

INSTANTIATE_TEST_SUITE_P(Wires, OrdersOfPublications, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "SharedMemory" : "Tcp"); });

}  // namespace
}  // namespace sluice::comm::publication_orders_test
