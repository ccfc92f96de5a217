#include "engine/schedule/state/agreed_end.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <thread>
#include <vector>

#include "engine/ranks/mailed_reductions.h"
#include "tests/engine/ranks/mail_in_one_process.h"

namespace sluice::engine::agreed_end_test {
namespace {

using testing::MailInOneProcess;

// The ranks of a world, of which each has entered the iterations up to one of its own.
class Agreeing {
 public:
  explicit Agreeing(const std::vector<int64_t>& entered, uint64_t seed = 0)
      : mail_(static_cast<int>(entered.size()), seed, seed == 0 ? 0 : 200) {
    for (size_t rank = 0; rank < entered.size(); ++rank) {
      Rank& made = *ranks_.emplace_back(std::make_unique<Rank>(mail_.rank(static_cast<int>(rank))));
      for (int64_t iteration = 0; iteration <= entered[rank]; ++iteration) made.cutoff.enters(iteration);
    }
  }
  ~Agreeing() { mail_.close(); }

  struct Rank {
    explicit Rank(Mail& mail) : reductions(mail) {}

    MailedReductions reductions;
    IterationCutoff cutoff{0};
    std::promise<int64_t> told;
    std::atomic<int> times = 0;
    std::atomic<bool> closed = false, cut_short = false, told_cut_short = false;
    std::string told_why;
    std::shared_ptr<AgreedEnd> end = std::make_shared<AgreedEnd>(
        reductions, cutoff,
        AgreedEnd::Tells{
            .closed = [this] { closed = true; },
            .agreed = [this](int64_t last, bool of_some_rank, const std::string& why) { agree(last, of_some_rank, why); },
            .cut_short_because = [this] { return cut_short ? std::optional<std::string>("rank 4 is lost") : std::nullopt; }});

    void agree(int64_t last, bool of_some_rank, const std::string& why) {
      EXPECT_TRUE(closed);
      told_cut_short = of_some_rank;
      told_why = why;
      if (++times == 1) told.set_value(last);
    }
  };
  Rank& operator[](size_t rank) { return *ranks_[rank]; }
  std::vector<std::unique_ptr<Rank>>& all() { return ranks_; }
  void close() { mail_.close(); }

 private:
  MailInOneProcess mail_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

// Whoever knows of it, and whoever asks.
TEST(AgreedEnd, AllLearnThatTheRunIsCutShort) {
  for (const bool is : {true, false}) {
    Agreeing ranks({7, 5, 6});
    for (auto& rank : ranks.all()) rank->end->listen();
    ranks[2].cut_short = is;
    ranks[0].end->ask();
    for (auto& rank : ranks.all()) {
      EXPECT_EQ(rank->told.get_future().get(), 5);
      EXPECT_EQ(rank->told_cut_short, is);
    }
    ranks.close();
  }
}

// Whoever asks, and however many at once.
TEST(AgreedEnd, IsTheLastIterationThatAllHaveEntered) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Agreeing ranks({7, 5, 6}, seed);
    for (auto& rank : ranks.all()) rank->end->listen();
    {
      std::vector<std::jthread> asking;
      for (size_t rank = 0; rank <= seed % 3; ++rank)
        asking.emplace_back([&ranks, rank] {
          ranks[rank].end->ask();
          ranks[rank].end->ask();
        });
    }
    for (auto& rank : ranks.all()) {
      EXPECT_EQ(rank->told.get_future().get(), 5);
      EXPECT_TRUE(rank->cutoff.drops(6));
      EXPECT_FALSE(rank->cutoff.drops(5));
    }
    ranks.close();
    for (auto& rank : ranks.all()) EXPECT_EQ(rank->times, 1);
  }
}

TEST(AgreedEnd, OfARunThatHasEnteredNothingIsBeforeTheFirst) {
  Agreeing ranks({3, -1});
  for (auto& rank : ranks.all()) rank->end->listen();
  ranks[0].end->ask();
  EXPECT_EQ(ranks[0].told.get_future().get(), -1);
}

TEST(AgreedEnd, NothingIsEnteredBehindItOnceARankIsCalled) {
  Agreeing ranks({3, 4});
  ranks[0].end->listen();
  ranks[0].end->ask();  // the other does not listen yet
  EXPECT_TRUE(ranks[0].cutoff.enters(3));
  EXPECT_FALSE(ranks[0].cutoff.enters(4));
  EXPECT_TRUE(ranks[1].cutoff.enters(5));
  ranks[1].end->listen();
  EXPECT_EQ(ranks[1].told.get_future().get(), 3);
}

TEST(AgreedEnd, TheFirstRankLearnsWhatAnotherOneKnows) {
  Agreeing ranks({7, 5});
  for (auto& rank : ranks.all()) rank->end->listen();
  ranks[1].cut_short = true;
  ranks[1].end->ask();
  for (auto& rank : ranks.all()) EXPECT_EQ(rank->told.get_future().get(), 5);
  EXPECT_EQ(ranks[0].told_why, "rank 4 is lost");
}

TEST(AgreedEnd, OfARunThatIsOverTellsNobody) {
  Agreeing ranks({3, 4});
  ranks[0].end->listen();
  ranks[0].end->ask();
  ranks[0].end->forget();
  ranks[1].end->listen();
  EXPECT_EQ(ranks[1].told.get_future().get(), 3);
  ranks.close();
  EXPECT_EQ(ranks[0].times, 0);
  EXPECT_FALSE(ranks[0].cutoff.drops(3));
}

TEST(AgreedEnd, OfOneProcessIsItsOwn) {
  OneProcess alone;
  IterationCutoff cutoff(4);
  int64_t told = -1;
  const auto end = std::make_shared<AgreedEnd>(
      alone, cutoff, AgreedEnd::Tells{.closed = [] {}, .agreed = [&](int64_t last, bool, const std::string&) { told = last; }});
  end->listen();
  ASSERT_TRUE(cutoff.enters(4));
  end->ask();
  EXPECT_EQ(told, 4);
}

}  // namespace
}  // namespace sluice::engine::agreed_end_test
