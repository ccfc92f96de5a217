#include "engine/ranks/mailed_reductions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "engine/ranks/contribution_bytes.h"
#include "tests/engine/ranks/mail_in_one_process.h"

namespace sluice::engine::mailed_reductions_test {
namespace {

using testing::MailInOneProcess;

constexpr std::chrono::seconds kLong{60};  // never reached unless something hangs

Part part(const std::string& name, double number) {
  Part part{.name = name, .kind = Metric::kSum, .recorded = true};
  part.numbers.sum.add(number);
  return part;
}

// The ranks of a world, without runs.
struct Ranks {
  explicit Ranks(int size, int64_t pause_us = 0) : mail(size, /*seed=*/3, pause_us) {
    for (int rank = 0; rank < size; ++rank) all.push_back(std::make_unique<MailedReductions>(mail.rank(rank)));
  }
  ~Ranks() { mail.close(); }

  std::future<Contribution> combine(int rank, Reductions::Key key, Contribution mine) {
    const auto promise = std::make_shared<std::promise<Contribution>>();
    all[static_cast<size_t>(rank)]->combine(key, std::move(mine),
                                            [promise](Contribution of_all) { promise->set_value(std::move(of_all)); });
    return promise->get_future();
  }

  MailInOneProcess mail;
  std::vector<std::unique_ptr<MailedReductions>> all;
};

Contribution result(std::future<Contribution> future) {
  if (future.wait_for(kLong) != std::future_status::ready) ADD_FAILURE() << "nothing came";
  return future.get();
}

std::vector<std::string> names_of(const Contribution& contribution) {
  std::vector<std::string> names;
  for (const Part& one : contribution) names.push_back(one.name);
  return names;
}

std::string failure_of(const MailInOneProcess& mail) {
  for (const auto until = std::chrono::steady_clock::now() + kLong; std::chrono::steady_clock::now() < until;) {
    if (mail.failures().empty()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    try {
      std::rethrow_exception(mail.failures().front());
    } catch (const InternalError& error) {
      return error.what();
    }
  }
  return "nothing went wrong";
}

TEST(MailedReductions, GiveEveryRankTheSumOfAll) {
  Ranks ranks(3);
  std::vector<std::future<Contribution>> futures;
  for (int rank = 0; rank < 3; ++rank) futures.push_back(ranks.combine(rank, {.iteration = 1}, {part("a", rank + 1)}));
  for (auto& future : futures) EXPECT_EQ(result(std::move(future)).at(0).numbers.sum.value(), 6);
  for (const auto& rank : ranks.all) EXPECT_EQ(rank->open(), 0u);
}

// Along a tree of two and three levels. Names that only some ranks have come in the order of the ranks there too, and rank 0 has
// the texts of all.
TEST(MailedReductions, OfManyRanksAreCollectedOnTheWay) {
  for (const int size : {9, 16, 65, 70}) {
    SCOPED_TRACE(size);
    Ranks ranks(size, /*pause_us=*/200);
    std::vector<std::string> names{"all"};
    for (int rank = 0; rank < size; ++rank) names.push_back("of " + std::to_string(rank));
    for (int64_t iteration = 0; iteration < 3; ++iteration) {
      std::vector<std::future<Contribution>> futures(static_cast<size_t>(size));
      for (int i = 0; i < size; ++i) {
        const int rank = i % 2 == 0 ? i / 2 : size - 1 - i / 2;  // from both ends
        if (rank > 0) ranks.all[static_cast<size_t>(rank)]->give({.iteration = iteration}, std::to_string(rank));
        futures[static_cast<size_t>(rank)] =
            ranks.combine(rank, {.iteration = iteration}, {part("all", rank), part("of " + std::to_string(rank), 1)});
      }
      for (int rank = 0; rank < size; ++rank) {
        const Contribution of_all = result(std::move(futures[static_cast<size_t>(rank)]));
        ASSERT_EQ(names_of(of_all), names);
        EXPECT_EQ(of_all.at(0).numbers.sum.value(), size * (size - 1) / 2);
        if (rank > 0) continue;
        EXPECT_EQ(ranks.all[0]->take_given({.iteration = iteration}).size(), static_cast<size_t>(size - 1));
      }
    }
    for (const auto& rank : ranks.all) EXPECT_EQ(rank->open(), 0u);
    EXPECT_TRUE(ranks.mail.failures().empty());
  }
}

TEST(MailedReductions, OfOneRankAreItsOwn) {
  Ranks ranks(1);
  EXPECT_EQ(result(ranks.combine(0, {}, {part("a", 4)})).at(0).numbers.sum.value(), 4);
}

// It waits for nobody: a node of an iteration that is dropped meanwhile still reads what it has added.
TEST(MailedReductions, OfOneRankAreItsOwnEvenWhereItIsAbandoned) {
  Ranks ranks(1);
  ranks.all[0]->abandon_behind(0);
  EXPECT_EQ(result(ranks.combine(0, {.iteration = 1}, {part("a", 7)})).at(0).numbers.sum.value(), 7);
  ranks.all[0]->abandon();
  EXPECT_EQ(result(ranks.combine(0, {.iteration = 2}, {part("a", 8)})).at(0).numbers.sum.value(), 8);
}

// Names that only some ranks have come in the order of the ranks, whoever came first.
TEST(MailedReductions, HaveTheSameNamesInTheSameOrderOnAllRanks) {
  Ranks ranks(3, /*pause_us=*/2000);
  auto two = ranks.combine(2, {}, {part("all", 1), part("of two", 1)});
  auto one = ranks.combine(1, {}, {part("all", 1), part("of one", 1)});
  auto zero = ranks.combine(0, {}, {part("all", 1), part("of zero", 1)});
  const std::vector<std::string> expected = {"all", "of zero", "of one", "of two"};
  EXPECT_EQ(names_of(result(std::move(zero))), expected);
  EXPECT_EQ(names_of(result(std::move(one))), expected);
  EXPECT_EQ(names_of(result(std::move(two))), expected);
}

TEST(MailedReductions, TakeKeysInAnyOrder) {
  Ranks ranks(2);
  std::vector<std::future<Contribution>> zero, one;
  for (int node = 0; node < 50; ++node) zero.push_back(ranks.combine(0, {.node = node}, {part("a", node)}));
  for (int node = 49; node >= 0; --node) one.push_back(ranks.combine(1, {.node = node}, {part("a", node)}));
  for (int node = 0; node < 50; ++node) {
    const auto index = static_cast<size_t>(node);
    EXPECT_EQ(result(std::move(zero[index])).at(0).numbers.sum.value(), 2 * node);
    EXPECT_EQ(result(std::move(one[49 - index])).at(0).numbers.sum.value(), 2 * node);
  }
}

TEST(MailedReductions, GiveWhoIsAbandonedNothing) {
  Ranks ranks(2);
  auto waiting = ranks.combine(0, {.iteration = 1}, {part("a", 1)});
  ranks.all[0]->abandon();
  EXPECT_TRUE(result(std::move(waiting)).empty());
  EXPECT_TRUE(result(ranks.combine(0, {.iteration = 2}, {part("a", 1)})).empty());
  auto other = ranks.combine(1, {.iteration = 1}, {part("a", 1)});
  EXPECT_EQ(result(std::move(other)).at(0).numbers.sum.value(), 2) << "the other rank has what it needs";
}

// What belongs to an iteration after the last one is over, now and later; all else goes on.
TEST(MailedReductions, GiveWhatIsBehindTheLastIterationNothing) {
  Ranks ranks(2);
  auto last = ranks.combine(0, {.iteration = 4}, {part("a", 1)});
  auto behind = ranks.combine(0, {.iteration = 5}, {part("a", 1)});
  auto saved = ranks.combine(0, Reductions::Key::saved(5, 0, true), {part("a", 1)});
  auto saved_behind = ranks.combine(0, Reductions::Key::saved(6, 0, false), {part("a", 1)});
  auto whether_saved = ranks.combine(0, Reductions::Key::last_save(), {part("a", 1)});
  ranks.all[0]->abandon_behind(4);
  EXPECT_TRUE(result(std::move(behind)).empty());
  EXPECT_TRUE(result(std::move(saved_behind)).empty());
  EXPECT_TRUE(result(ranks.combine(0, {.iteration = 6}, {part("a", 1)})).empty());
  for (const Reductions::Key& key :
       {Reductions::Key{.iteration = 4}, Reductions::Key{.iteration = 5}, Reductions::Key{.iteration = 6},
        Reductions::Key::saved(5, 0, true), Reductions::Key::last_save()})
    ranks.combine(1, key, {part("a", 1)});
  EXPECT_EQ(result(std::move(last)).at(0).numbers.sum.value(), 2);
  EXPECT_EQ(result(std::move(saved)).at(0).numbers.sum.value(), 2);
  EXPECT_EQ(result(std::move(whether_saved)).at(0).numbers.sum.value(), 2);
  EXPECT_EQ(ranks.all[0]->open(), 0u);
}

TEST(MailedReductions, CallAllRanksAlsoThoseThatListenLater) {
  Ranks ranks(3);
  std::vector<std::promise<void>> called(3);
  for (size_t rank = 0; rank < 2; ++rank) ranks.all[rank]->on_call([&called, rank] { called[rank].set_value(); });
  ranks.all[1]->call();
  for (size_t rank = 0; rank < 2; ++rank) EXPECT_EQ(called[rank].get_future().wait_for(kLong), std::future_status::ready);
  ranks.all[2]->on_call([&called] { called[2].set_value(); });
  EXPECT_EQ(called[2].get_future().wait_for(kLong), std::future_status::ready);
}

// Whoever comes first, abandon() or the last part: each `done` is called once.
TEST(MailedReductions, CallEveryDoneOnceWhileTheyAreAbandoned) {
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<std::atomic<int>> calls(20);
    {
      Ranks ranks(2);
      std::jthread others([&] {
        for (int node = 0; node < 20; ++node) ranks.combine(1, {.node = node}, {part("a", 1)});
      });
      std::jthread abandons([&] { ranks.all[0]->abandon(); });
      for (int node = 0; node < 20; ++node)
        ranks.all[0]->combine({.node = node}, {part("a", 1)}, [&, node](Contribution) { ++calls[static_cast<size_t>(node)]; });
      abandons.join();
      others.join();
      ranks.mail.close();
    }
    for (const std::atomic<int>& count : calls) ASSERT_EQ(count, 1);
  }
}

TEST(MailedReductions, RefuseASecondContributionToAKey) {
  Ranks ranks(2);
  ranks.combine(0, {.iteration = 7, .node = 2}, {});
  EXPECT_THROW(ranks.combine(0, {.iteration = 7, .node = 2}, {}), InternalError);
}

TEST(MailedReductions, RefuseASecondMessageAboutAKey) {
  Ranks ranks(3);
  ByteWriter bytes;
  bytes.number(uint8_t{0});  // numbers
  for (const int64_t number : {7, 2, 0}) bytes.number(number);
  bytes.number(uint64_t{0});  // texts
  write_contribution(bytes, {});
  const std::string message = bytes.take();
  for (int time = 0; time < 2; ++time) ranks.mail.rank(1).send(0, Mail::Channel::kNumbers, message);
  EXPECT_THAT(failure_of(ranks.mail), ::testing::HasSubstr("rank 1 has contributed twice to point 0 of node 2 in iteration 7"));
}

TEST(MailedReductions, WithANameOfTwoKindsCallNobodyUntilTheyAreAbandoned) {
  Ranks ranks(2);
  auto waiting = ranks.combine(0, {}, {part("a", 1)});
  Part other = part("a", 1);
  other.kind = Metric::kMean;
  std::string said;
  try {
    ranks.combine(1, {}, {other});
  } catch (const InternalError& error) {  // it brought the last part, so no mail tells of it
    said = error.what();
  }
  EXPECT_THAT(said.empty() ? failure_of(ranks.mail) : said, ::testing::HasSubstr("metric 'a' of two kinds"));
  EXPECT_EQ(waiting.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  ranks.all[0]->abandon();
  EXPECT_TRUE(result(std::move(waiting)).empty());
}

TEST(MailedReductions, TellTheMailOfWhatIsDamaged) {
  Ranks ranks(2);
  ranks.mail.rank(1).send(0, Mail::Channel::kNumbers, "damaged");
  EXPECT_THAT(failure_of(ranks.mail), ::testing::HasSubstr("bytes that end too early"));
}

TEST(MailedReductions, KnowWhoAddsGradients) {
  MailInOneProcess mail(1, 0, 0);
  std::string asked;
  MailedReductions reductions(mail.rank(0), [&](const std::string& model) -> GradientGroup* {
    asked = model;
    return nullptr;
  });
  EXPECT_EQ(reductions.gradients("actor"), nullptr);
  EXPECT_EQ(asked, "actor");
  mail.close();
}

}  // namespace
}  // namespace sluice::engine::mailed_reductions_test
