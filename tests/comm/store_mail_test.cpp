#include "comm/store_mail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/numbers/bytes.h"
#include "base/process/free_port.h"
#include "engine/ranks/mailed_reductions.h"
#include "tests/comm/ranks_in_threads.h"

namespace sluice::comm::store_mail_test {
namespace {

using engine::Mail;
using ::testing::HasSubstr;
using testing::in_threads;

constexpr std::chrono::seconds kLong{60};  // never reached unless something hangs

// Three ranks in this process, each with a store and a mail of its own.
class StoreMailTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  void SetUp() override {
    const int port = free_port();
    const auto said = in_threads(kRanks, [&](int rank) {
      const auto index = static_cast<size_t>(rank);
      stores_[index] = std::make_unique<Store>(JoinOptions{.rank = rank, .size = kRanks, .port = port, .join_seconds = 30});
      mails_[index] =
          std::make_unique<StoreMail>(*stores_[index], [this](std::exception_ptr error) { failed(std::move(error)); });
    });
    ASSERT_THAT(said, ::testing::Each(""));
  }

  // Rank 0 last: it serves the store.
  void TearDown() override {
    for (auto& mail : mails_) mail.reset();
    for (size_t rank = kRanks; rank-- > 0;) stores_[rank].reset();
  }

  StoreMail& mail(int rank) { return *mails_.at(static_cast<size_t>(rank)); }

  std::string failure() {
    const auto error = failure_.get_future();
    if (error.wait_for(kLong) != std::future_status::ready) return "nothing";
    return failure_text_;
  }

  std::unique_ptr<Store> stores_[kRanks];
  std::vector<std::unique_ptr<StoreMail>> mails_ = std::vector<std::unique_ptr<StoreMail>>(kRanks);
  int failures_ = 0;

 private:
  void failed(std::exception_ptr error) {
    try {
      std::rethrow_exception(std::move(error));
    } catch (const std::exception& what) {
      failure_text_ = what.what();
    }
    if (++failures_ == 1) failure_.set_value();
  }

  std::promise<void> failure_;
  std::string failure_text_;
};

// What one rank has received, and a way to wait for it.
class Received {
 public:
  explicit Received(size_t expected) : expected_(expected) {}

  void add(int from, const std::string& message) {
    const std::lock_guard lock(mutex_);
    all_.emplace_back(from, message);
    if (all_.size() == expected_) done_.set_value();
  }

  std::vector<std::pair<int, std::string>> wait() {
    EXPECT_EQ(done_.get_future().wait_for(kLong), std::future_status::ready);
    const std::lock_guard lock(mutex_);  // add() is through
    return all_;
  }

 private:
  const size_t expected_;
  std::mutex mutex_;
  std::vector<std::pair<int, std::string>> all_;
  std::promise<void> done_;
};

TEST_F(StoreMailTest, BringsTheMessagesOfEachRankInTheirOrder) {
  constexpr int kMessages = 1000;
  std::vector<std::unique_ptr<Received>> received;
  for (int rank = 0; rank < kRanks; ++rank) received.push_back(std::make_unique<Received>((kRanks - 1) * kMessages));
  for (int rank = 0; rank < kRanks; ++rank) {
    mail(rank).receive(Mail::Channel::kNumbers, [&, rank](int from, const std::string& message) {
      received[static_cast<size_t>(rank)]->add(from, message);
    });
  }
  in_threads(kRanks, [&](int rank) {
    for (int i = 0; i < kMessages; ++i) {
      for (int to = 0; to < kRanks; ++to)
        if (to != rank) mail(rank).send(to, Mail::Channel::kNumbers, std::to_string(i));
    }
  });
  for (auto& one : received) {
    std::vector<int> next(kRanks);
    for (const auto& [from, message] : one->wait()) ASSERT_EQ(message, std::to_string(next[static_cast<size_t>(from)]++));
  }
}

TEST_F(StoreMailTest, KeepsMessagesUntilThereIsAHandler) {
  mail(1).send(0, Mail::Channel::kControl, "early");
  Received barrier(1), early(1);
  mail(0).receive(Mail::Channel::kNumbers, [&](int from, const std::string& text) { barrier.add(from, text); });
  mail(1).send(0, Mail::Channel::kNumbers, "the other is there by now");
  barrier.wait();
  mail(0).receive(Mail::Channel::kControl, [&](int from, const std::string& text) { early.add(from, text); });
  EXPECT_EQ(early.wait().front(), std::pair(1, std::string("early")));
}

TEST_F(StoreMailTest, BringsLongMessagesWhole) {
  const std::string text(size_t{9} << 20, 'x');
  Received received(3);
  mail(2).receive(Mail::Channel::kNumbers, [&](int from, const std::string& message) { received.add(from, message); });
  mail(0).send(2, Mail::Channel::kNumbers, text + "0");
  mail(1).send(2, Mail::Channel::kNumbers, text + "1");
  mail(1).send(2, Mail::Channel::kNumbers, "");
  for (const auto& [from, message] : received.wait())
    EXPECT_TRUE(message.empty() || message == text + std::to_string(from)) << message.size();
}

TEST_F(StoreMailTest, CarriesReductions) {
  std::vector<std::unique_ptr<engine::MailedReductions>> reductions;
  for (int rank = 0; rank < kRanks; ++rank) reductions.push_back(std::make_unique<engine::MailedReductions>(mail(rank)));
  constexpr int kKeys = 200;
  std::vector<std::vector<double>> sums(kRanks);
  in_threads(kRanks, [&](int rank) {
    for (int key = 0; key < kKeys; ++key) {
      engine::Part part{.name = "a", .recorded = true};
      part.numbers.sum.add(.1 * (rank + 1) * key);
      const auto sum = std::make_shared<std::promise<double>>();
      reductions[static_cast<size_t>(rank)]->combine({.iteration = key}, {part}, [sum](const engine::Contribution& all) {
        sum->set_value(all.front().numbers.sum.value());
      });
      sums[static_cast<size_t>(rank)].push_back(sum->get_future().get());
    }
  });
  EXPECT_EQ(sums[0].size(), static_cast<size_t>(kKeys));
  EXPECT_EQ(sums[1], sums[0]);
  EXPECT_EQ(sums[2], sums[0]);
  for (auto& one : mails_) one->close();
}

TEST_F(StoreMailTest, TellsOfAMessageThatComesTwice) {
  ByteWriter frame;
  frame.number(uint32_t{1});  // from rank 1
  frame.number(int64_t{0});   // its first process
  frame.number(uint64_t{0});
  frame.number(uint8_t{0});
  frame.number(uint8_t{1});
  const std::string bytes = frame.take();
  const auto connection = stores_[2]->connect();
  connection->push("inbox/0/0", bytes);
  connection->push("inbox/0/0", bytes);
  EXPECT_THAT(failure(), HasSubstr("message 0 of rank 1 came instead of 1"));
}

TEST_F(StoreMailTest, TellsWhatAHandlerThrows) {
  mail(0).receive(Mail::Channel::kNumbers, [](int, const std::string&) { throw InternalError("a fault"); });
  mail(1).send(0, Mail::Channel::kNumbers, "");
  EXPECT_THAT(failure(), HasSubstr("a fault"));
}

TEST_F(StoreMailTest, CallsNobodyOnceItIsClosed) {
  int calls = 0;
  mail(0).receive(Mail::Channel::kNumbers, [&](int, const std::string&) { ++calls; });
  mail(0).close();
  const int before = calls;
  mail(1).send(0, Mail::Channel::kNumbers, "late");
  mail(0).send(1, Mail::Channel::kNumbers, "dropped");
  EXPECT_EQ(calls, before);
  EXPECT_EQ(failures_, 0);
}

TEST_F(StoreMailTest, TellsOnceThatRank0IsGone) {
  mails_[0].reset();
  mails_[2].reset();
  stores_[0].reset();
  EXPECT_THAT(failure(), HasSubstr("rank 0 has closed the connection"));
  mail(1).send(2, Mail::Channel::kNumbers, "dropped");
  mail(1).close();
  EXPECT_EQ(failures_, 1);
}

}  // namespace
}  // namespace sluice::comm::store_mail_test
