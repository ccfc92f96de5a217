#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "base/numbers/random.h"
#include "comm/weights/publication_plan.h"
#include "tests/comm/publishing_ranks.h"

namespace sluice::comm::publication_plan_test {
namespace {

using testing::layout_of;

// Bytes that the plan makes each rank send and get.
struct PlannedTraffic {
  std::vector<size_t> sent, received;           // by rank
  std::vector<size_t> left_host, came_to_host;  // by host, as far as there are any
};

// Follows every piece from its owner to all who bring it to a landing, of which each has one.
PlannedTraffic traffic_of(const PublicationPlan& plan, int ranks) {
  const std::vector<size_t> nothing(static_cast<size_t>(ranks) + 4);
  PlannedTraffic traffic{nothing, nothing, nothing, nothing};
  for (const PublishedPiece& piece : plan.pieces()) {
    std::vector<int> have{piece.owner};
    for (size_t next = 0; next < have.size(); ++next) {
      const int rank = have[next];
      for (const int target : plan.targets(piece, rank)) {
        EXPECT_EQ(plan.source(piece, target), rank);
        EXPECT_EQ(std::ranges::count(have, target), 0) << "it comes to rank " << target << " twice";
        have.push_back(target);
        traffic.sent[static_cast<size_t>(rank)] += piece.range.size();
        traffic.received[static_cast<size_t>(target)] += piece.range.size();
        const std::vector<int>& hosts = plan.layout().hosts;
        if (hosts.empty() || hosts[static_cast<size_t>(rank)] == hosts[static_cast<size_t>(target)]) continue;
        traffic.left_host[static_cast<size_t>(hosts[static_cast<size_t>(rank)])] += piece.range.size();
        traffic.came_to_host[static_cast<size_t>(hosts[static_cast<size_t>(target)])] += piece.range.size();
      }
    }
    for (const int receiver : plan.layout().receivers) {
      const int bringer = plan.bringer(piece, receiver);
      const std::vector<int> sharers = plan.sharers(receiver);
      EXPECT_EQ(std::ranges::count(have, bringer), 1) << "rank " << bringer;
      EXPECT_EQ(std::ranges::count(sharers, bringer), 1) << "rank " << bringer << " has no part of that landing";
      EXPECT_TRUE(receiver == bringer || receiver == piece.owner || std::ranges::count(have, receiver) == 0)
          << "rank " << receiver << " gets what rank " << bringer << " brings in";
    }
  }
  return traffic;
}

TEST(PublicationPlan, CutsAllBytesIntoPiecesOfOneOwner) {
  const PublicationPlan plan(layout_of(7, 4, 3, 10'000'000, 3, 12'345));
  size_t end = 0;
  for (const PublishedPiece& piece : plan.pieces()) {
    EXPECT_EQ(piece.range.begin, end);
    end = piece.range.end;
    EXPECT_GE(piece.range.begin, piece.owned.begin);
    EXPECT_LE(piece.range.end, piece.owned.end);
  }
  EXPECT_EQ(end, plan.layout().bytes());
}

// So time does not grow with the number of ranks, whoever owns and receives.
TEST(PublicationPlan, MakesNoRankSendOrGetMoreThanAVersion) {
  for (int owners = 1; owners <= 5; ++owners) {
    for (int receivers = 1; receivers <= 5; ++receivers) {
      for (int both = 0; both <= std::min(owners, receivers); ++both) {
        SCOPED_TRACE(std::to_string(owners) + " owners, " + std::to_string(receivers) + " receivers, " + std::to_string(both) +
                     " are both");
        const int ranks = owners + receivers - both;
        const PublicationPlan plan(layout_of(ranks, owners, receivers, 60'000'000, 4, 0));
        const PlannedTraffic traffic = traffic_of(plan, ranks);
        const size_t most = plan.layout().bytes() + plan.layout().bytes() / 100;
        for (const size_t bytes : traffic.sent) EXPECT_LE(bytes, most);
        for (const size_t bytes : traffic.received) EXPECT_LE(bytes, most);
      }
    }
  }
}

// Ranks of one host copy from each other, and over the network of a host goes a version at most, each way.
TEST(PublicationPlan, BringsEachByteToAHostOnce) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    RandomStream random(seed, 1);
    const int ranks = 2 + static_cast<int>(random.below(7)), hosts = 1 + static_cast<int>(random.below(4));
    const int owners = 1 + static_cast<int>(random.below(static_cast<uint64_t>(ranks)));
    const int receivers = std::max(ranks - owners, 1 + static_cast<int>(random.below(static_cast<uint64_t>(ranks))));
    auto layout = layout_of(ranks, owners, receivers, 60'000'000, 4, 0);
    for (int& host : layout.hosts) host = static_cast<int>(random.below(static_cast<uint64_t>(hosts)));
    const PublicationPlan plan(layout);
    const PlannedTraffic traffic = traffic_of(plan, ranks);
    std::vector<size_t> owned(static_cast<size_t>(hosts));
    for (const PublishedPiece& piece : plan.pieces())
      owned[static_cast<size_t>(layout.hosts[static_cast<size_t>(piece.owner)])] += piece.range.size();
    for (int host = 0; host < hosts; ++host) {
      const bool receives =
          std::ranges::any_of(layout.receivers, [&](int rank) { return layout.hosts[static_cast<size_t>(rank)] == host; });
      EXPECT_EQ(traffic.came_to_host[static_cast<size_t>(host)],
                receives ? layout.bytes() - owned[static_cast<size_t>(host)] : 0);
      EXPECT_LE(traffic.left_host[static_cast<size_t>(host)], layout.bytes() + layout.bytes() / 50);
    }
  }
}

// So that their work is shared, and the memory of one is enough for all.
TEST(PublicationPlan, HasReceiversOfAHostBringInEqualPartsOfOneLanding) {
  for (int receivers = 1; receivers <= 8; ++receivers) {
    auto layout = layout_of(1 + receivers, 1, receivers, 60'000'000, 4, 0);
    layout.hosts.assign(layout.hosts.size(), 0);
    const PublicationPlan plan(layout);
    const PlannedTraffic traffic = traffic_of(plan, 1 + receivers);
    EXPECT_EQ(plan.sharers(1), layout.receivers);
    EXPECT_TRUE(plan.sharers(0).empty());
    EXPECT_EQ(traffic.sent[0], layout.bytes());
    for (int rank = 1; rank <= receivers; ++rank)
      EXPECT_NEAR(static_cast<double>(traffic.received[static_cast<size_t>(rank)]),
                  static_cast<double>(layout.bytes()) / receivers, static_cast<double>(layout.bytes()) / 32);
  }
}

// Another process may take its place, and would have no part of what it left.
TEST(PublicationPlan, HasReceiversThatMayBeLostBringInAllOfALandingOfTheirOwn) {
  auto layout = layout_of(4, 1, 3, 1'000'000, 2, 0);
  layout.hosts.assign(layout.hosts.size(), 0);
  const PublicationPlan plan(layout, true);
  const PlannedTraffic traffic = traffic_of(plan, 4);
  EXPECT_EQ(plan.sharers(2), std::vector<int>{2});
  EXPECT_EQ(traffic.received, (std::vector<size_t>{0, layout.bytes(), layout.bytes(), layout.bytes(), 0, 0, 0, 0}));
}

// As to three receivers: an owner is never sent its own.
TEST(PublicationPlan, SendsEachByteOnceFromAnOwnerThatReceivesToo) {
  const PublicationPlan plan(layout_of(4, 1, 4, 10'000'000, 2, 0));
  const PlannedTraffic traffic = traffic_of(plan, 4);
  EXPECT_EQ(traffic.sent[0], plan.layout().bytes());
  EXPECT_EQ(traffic.received[0], 0);
  EXPECT_EQ(std::accumulate(traffic.sent.begin(), traffic.sent.end(), size_t{0}), 3 * plan.layout().bytes());
}

// The last piece goes round when all others have.
TEST(PublicationPlan, TakesLessThanA64thForTheLastPieceToGoRound) {
  for (const int receivers : {2, 8, 20}) {
    const PublicationPlan plan(layout_of(1 + receivers, 1, receivers, size_t{32} << 20, 8, 0));
    size_t largest = 0;
    for (const PublishedPiece& piece : plan.pieces()) largest = std::max(largest, piece.range.size());
    EXPECT_LE(largest * static_cast<size_t>(receivers - 1), plan.layout().bytes() / 64) << receivers << " receivers";
  }
}

}  // namespace
}  // namespace sluice::comm::publication_plan_test
