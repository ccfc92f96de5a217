#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>
#include <vector>

#include "base/numbers/random.h"
#include "base/process/free_port.h"
#include "comm/heartbeat.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/parcels/peer_sockets.h"
#include "comm/store.h"
#include "comm/store_mail.h"
#include "comm/weights/direct_publication.h"
#include "tests/comm/parcel_ranks.h"
#include "tests/comm/publishing_ranks.h"
#include "tests/comm/ranks_in_threads.h"

// Ranks 0 and 1 stay, and another process takes the place of rank 2.
namespace sluice::comm::returned_rank_test {
namespace {

using engine::Mail;
using testing::Countdown;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_threads;
using testing::kNeverSoLong;

constexpr int kRanks = 3, kLost = 2;

class ReturnedRank : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto said = in_threads(kRanks, [&](int rank) { stores_[rank] = std::make_unique<Store>(joining(rank)); });
    ASSERT_THAT(said, Each(""));
  }

  void TearDown() override {
    for (auto& heart : hearts_) heart.reset();
    for (auto& mail : mails_) mail.reset();
    for (int rank = kRanks + 1; rank-- > 0;) stores_[rank].reset();
  }

  JoinOptions joining(int rank) const {
    return {.rank = rank, .size = kRanks, .port = port_, .join_seconds = 30, .answer_seconds = 5, .may_come_back = rank == kLost};
  }

  void start_heart(int index) {
    const int rank = index < kRanks ? index : kLost;
    hearts_[index] = std::make_unique<Heartbeat>(
        *stores_[index],
        HeartbeatOptions{.beat_seconds = .05,
                         .dead_after_seconds = 5,
                         .sign = [index] { return engine::RankSign{.doing = "process " + std::to_string(index)}; },
                         .lost = [this, index](const RankLoss&) { lost_[index].count(); },
                         .expendable = {.first = kLost, .count = 1},
                         .gone = [this, rank](const RankLoss& loss) { note_gone(rank, loss); },
                         .back =
                             [this](int of, int64_t incarnation) {
                               EXPECT_EQ(of, kLost);
                               EXPECT_EQ(incarnation, 1);
                               back_.count();
                             }});
  }

  void note_gone(int rank, const RankLoss& loss) {
    if (rank != 0) return;
    gone_.push_back(loss);
    (gone_.size() == 1 ? first_gone_ : second_gone_).count();
  }

  // As the others have found it lost.
  void lose() {
    const auto store = stores_[0]->connect();
    store->set(gone_key(kLost, 0), bytes_of(RankLoss{.rank = kLost}));
  }
  void start_again() { stores_[kRanks] = std::make_unique<Store>(joining(kLost)); }

  const int port_ = free_port();
  std::unique_ptr<Store> stores_[kRanks + 1];  // of each process: the last is rank 2 again
  std::unique_ptr<Heartbeat> hearts_[kRanks + 1];
  std::unique_ptr<StoreMail> mails_[kRanks + 1];
  Countdown lost_[kRanks + 1]{Countdown(1), Countdown(1), Countdown(1), Countdown(1)};
  std::vector<RankLoss> gone_;  // as rank 0 has heard
  Countdown first_gone_{1}, second_gone_{1}, back_{2};
};

TEST_F(ReturnedRank, IsRefusedWhileTheFirstOneBeats) {
  start_heart(kLost);
  EXPECT_THAT(in_threads(1, [&](int) { const Store second(joining(kLost)); }),
              ElementsAre("two processes say that they are rank 2"));
}

TEST_F(ReturnedRank, IsOneProcessThoughTwoWantToBeIt) {
  lose();
  const Store one(joining(kLost)), other(joining(kLost));
  EXPECT_NE(one.incarnation(), other.incarnation());
  other.come_back();
  EXPECT_THAT(in_threads(1, [&](int) { one.come_back(); }), ElementsAre("two processes say that they are rank 2"));
}

TEST_F(ReturnedRank, HasToHaveTheKeyOfTheRun) {
  lose();
  JoinOptions other = joining(kLost);
  other.key = "another";
  EXPECT_THAT(in_threads(1, [&](int) { const Store store(other); }), ElementsAre("rank 2 has another key than rank 0"));
}

TEST_F(ReturnedRank, IsWatchedAsItself) {
  for (const int rank : {0, 1, kLost}) start_heart(rank);
  hearts_[0]->give_up(kLost, 0);
  ASSERT_TRUE(lost_[kLost].came());  // it learns that the others go on
  start_again();
  EXPECT_EQ(stores_[kRanks]->incarnation(), 1);
  start_heart(kRanks);
  stores_[kRanks]->come_back();
  ASSERT_TRUE(back_.came());
  hearts_[0]->give_up(kLost, 0);  // word of the first process, which comes late
  const auto until = Clock::now() + kNeverSoLong;
  while (hearts_[0]->seen()[kLost].last.doing != "process 3" && Clock::now() < until) std::this_thread::yield();
  EXPECT_EQ(hearts_[0]->seen()[kLost].last.doing, "process 3");
  hearts_[kRanks]->step_back("it has no model");
  ASSERT_TRUE(second_gone_.came());
  hearts_[1]->end_well();
  hearts_[0]->end_well();  // nobody fails by it
  ASSERT_EQ(gone_.size(), 2u);
  EXPECT_THAT(text_of(gone_.back()), HasSubstr("failed: it has no model"));
}

TEST_F(ReturnedRank, HearsNothingThatWasForTheFirstOneAndSaysNothingBeforeItMay) {
  for (int rank = 0; rank < kRanks; ++rank)
    mails_[rank] = std::make_unique<StoreMail>(*stores_[rank], [](const std::exception_ptr&) { ADD_FAILURE(); });
  mails_[0]->send(kLost, Mail::Channel::kGroups, "to the first");
  mails_[kLost]->send(0, Mail::Channel::kClock, "from the first");
  lose();
  mails_[0]->lose(kLost);
  mails_[0]->send(kLost, Mail::Channel::kGroups, "to nobody");
  start_again();
  mails_[kRanks] = std::make_unique<StoreMail>(*stores_[kRanks], [](const std::exception_ptr&) { ADD_FAILURE(); });
  mails_[kRanks]->send(0, Mail::Channel::kGroups, "from the second");
  mails_[0]->take_back(kLost, 1);
  mails_[kLost]->send(0, Mail::Channel::kGroups, "from the first, which goes on");
  mails_[0]->send(kLost, Mail::Channel::kGroups, "to the second");
  mails_[kRanks]->begin();
  std::promise<std::string> heard_by_0, heard_by_it;
  mails_[0]->receive(Mail::Channel::kGroups, [&](int, const std::string& message) { heard_by_0.set_value(message); });
  mails_[kRanks]->receive(Mail::Channel::kGroups, [&](int, const std::string& message) { heard_by_it.set_value(message); });
  EXPECT_EQ(heard_by_0.get_future().get(), "from the second");
  EXPECT_EQ(heard_by_it.get_future().get(), "to the second");
  for (auto& mail : mails_) mail->close();
}

// The parcels of ranks 0 and 1, and of the processes that are rank 2.
class ParcelsOfReturnedRank : public ::testing::TestWithParam<bool> {
 protected:
  ParcelsOfReturnedRank() {
    const auto said = in_threads(kRanks, [&](int rank) {
      parcels_[rank] = made(rank, meet_peers(*store_, "parcels", {rank, kRanks}, options()));
    });
    EXPECT_THAT(said, Each(""));
  }
  ~ParcelsOfReturnedRank() override {
    for (auto& parcels : parcels_) parcels.reset();
  }

  PeerSocketOptions options() const { return {.shares_memory = GetParam(), .to_connect = std::chrono::seconds(20)}; }

  std::unique_ptr<DirectParcels> made(int rank, std::vector<PeerSocket> peers) {
    const auto connect = [this, rank](int other, int64_t incarnation) {
      return connect_with(*store_, "parcels", {rank, kRanks}, other, incarnation, options());
    };
    return std::make_unique<DirectParcels>(
        engine::World{rank, kRanks}, std::move(peers), [](const std::exception_ptr&) { ADD_FAILURE(); }, DamageOptions(),
        ExpendableRanks{.ranks = {.first = kLost, .count = 1},
                        .lost = [this](int, int64_t incarnation) { notice(incarnation); },
                        .connect = connect});
  }

  void notice(int64_t incarnation) {
    last_noticed_ = incarnation;
    noticed_.count();
  }

  void lose() {
    parcels_[kLost]->abandon();
    parcels_[kLost].reset();
    EXPECT_TRUE(noticed_.came());
  }

  void start_again() {
    const auto announce = [this] {
      connecting_ = std::async(std::launch::async, [this] {
        for (const int rank : {0, 1}) parcels_[rank]->take_back(kLost, 1);
      });
    };
    parcels_[kRanks] = made(kLost, come_back(*store_, "parcels", {kLost, kRanks}, 1, kLost, announce, options()));
    connecting_.get();
  }

  DirectParcels& process(int index) { return *parcels_[index]; }

  void carry(int from, int to, int64_t number, uint64_t seed) {
    RandomStream random(seed, 4);
    const engine::Parcel sent = testing::random_parcel(random, 3000);
    const engine::ParcelKey key{"edge", 1, number};
    std::promise<engine::Parcel> arrived;
    const auto rank_of = [](int index) { return index < kRanks ? index : kLost; };
    process(to).receive(rank_of(from), key, int64_t{64} << 20,
                        [&](engine::Parcel parcel) { arrived.set_value(std::move(parcel)); });
    process(from).send(rank_of(to), key, sent, {});
    const engine::Parcel got = arrived.get_future().get();
    EXPECT_EQ(got.header, sent.header);
    ASSERT_EQ(got.columns.size(), sent.columns.size());
    EXPECT_EQ(engine::credit_bytes(got), engine::credit_bytes(sent));
  }

  const c10::intrusive_ptr<c10d::HashStore> store_ = c10::make_intrusive<c10d::HashStore>();
  Countdown noticed_{2};
  std::atomic<int64_t> last_noticed_ = -1;
  std::future<void> connecting_;
  std::unique_ptr<DirectParcels> parcels_[kRanks + 1];
};

// The same keys as before: nothing is left of the first process, in blocks that it knew either.
TEST_P(ParcelsOfReturnedRank, GoBothWaysAsBefore) {
  for (int64_t number = 0; number < 4; ++number) {
    carry(kLost, 0, number, 1 + static_cast<uint64_t>(number));
    carry(0, kLost, number, 9 + static_cast<uint64_t>(number));
  }
  const int64_t before = process(0).traffic()[kLost].bytes_received;
  lose();
  process(0).send(kLost, {"edge", 2, 0}, {.header = "to nobody", .columns = {}}, {});
  start_again();
  for (int64_t number = 0; number < 4; ++number) {
    carry(kRanks, 0, number, 21 + static_cast<uint64_t>(number));
    carry(0, kRanks, number, 31 + static_cast<uint64_t>(number));
    carry(1, kRanks, number, 41 + static_cast<uint64_t>(number));
  }
  carry(0, 1, 7, 51);
  EXPECT_GT(process(0).traffic()[kLost].bytes_received, before);
}

TEST_P(ParcelsOfReturnedRank, AreLostAgainWhereItDoesNotAnswer) {
  lose();
  store_->set("parcels/address/2/5", std::vector<uint8_t>());  // nobody's
  process(0).take_back(kLost, 5);
  EXPECT_EQ(last_noticed_, 5);
  carry(0, 1, 8, 61);
}

// Of a version that begins without it the others wait for nothing of it, and of those that follow it gets all.
TEST_P(ParcelsOfReturnedRank, BringVersionsFromTheOneOnThatItIsIn) {
  const engine::PublicationLayout layout = testing::layout_of(kRanks, 1, 2, 300'000, 2, 1000);
  Countdown opened[4]{Countdown(2), Countdown(2), Countdown(2), Countdown(3)};  // by version
  std::unique_ptr<DirectPublication> publications[kRanks + 1];
  const auto publish_with = [&](int index, int64_t first_version) {
    engine::PublicationLayout own = layout;
    own.first_version = first_version;
    publications[index] = std::make_unique<DirectPublication>(
        process(index), own,
        engine::Publication::Events{
            .landed = [&, index](int64_t version, uint32_t) { publications[index]->acknowledge(version); },
            .opened = [&](const engine::PublishedVersion& version) { opened[version.version].count(); }},
        ReceiverLosses{.may_be = true, .ranks = {}});
  };
  const auto publish = [&](int64_t version) {
    const auto landing = publications[1]->new_landing();
    publications[1]->receive(version, landing);
    for (const auto& bucket : layout.buckets)
      for (const engine::OwnedBytes& owned : bucket)
        publications[0]->offer(version, owned.range, testing::offered_bytes(*publications[0], version, owned.range), {});
    EXPECT_TRUE(opened[version].came()) << version;
    EXPECT_TRUE(testing::is_version(landing->bytes(), version));
  };
  for (const int rank : {0, 1}) publish_with(rank, 1);
  lose();
  for (const int rank : {0, 1}) publications[rank]->lose(kLost);
  publish(1);
  start_again();
  publish(2);
  for (const int rank : {0, 1}) publications[rank]->take_back(kLost, 3);
  publish_with(kRanks, 3);
  const std::shared_ptr<engine::Landing> landing = publications[kRanks]->new_landing();
  publications[kRanks]->receive(3, landing);
  publish(3);
  EXPECT_TRUE(testing::is_version(landing->bytes(), 3));
  for (auto& publication : publications) publication.reset();
}

INSTANTIATE_TEST_SUITE_P(Wires, ParcelsOfReturnedRank, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Memory" : "Tcp"; });

}  // namespace
}  // namespace sluice::comm::returned_rank_test
