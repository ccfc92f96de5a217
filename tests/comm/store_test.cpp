#include "comm/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <resolv.h>
#include <sys/socket.h>
#include <unistd.h>

#include <barrier>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "base/error.h"
#include "base/process/free_port.h"
#include "comm/sockets.h"
#include "tests/comm/ranks_in_threads.h"
#include "tests/temporary_folder.h"

namespace sluice::comm::store_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_threads;
using ::testing::StartsWith;

JoinOptions options(int rank, int size, int port) {
  return {.rank = rank, .size = size, .port = port, .join_seconds = 30, .answer_seconds = 5};
}

std::string message_of(const JoinOptions& options) {
  try {
    const Store store(options);
  } catch (const UserError& error) {
    return error.message();
  }
  return "joined";
}

TEST(Store, KnowsAllRanks) {
  const int port = free_port();
  std::barrier all_were_there(3);
  const auto said = in_threads(3, [&](int rank) {
    const Store store(options(rank, 3, port));
    ASSERT_EQ(store.members().size(), 3u);
    for (const Member& member : store.members()) EXPECT_EQ(member.pid, ::getpid());
    all_were_there.arrive_and_wait();  // rank 0 serves as long
  });
  EXPECT_THAT(said, Each(""));
}

TEST(Store, OfOneRankIsThereAtOnce) { EXPECT_EQ(message_of(options(0, 1, free_port())), "joined"); }

TEST(Store, TellsThatAPortIsInUse) {
  const int port = free_port();
  const Listener other = listen_on("127.0.0.1", port, /*everywhere=*/false);
  EXPECT_EQ(message_of(options(0, 1, port)),
            "port " + std::to_string(port) + " is in use on this machine: rank 0 cannot serve the store of the run there");
}

TEST(Store, TellsThatNobodyServesIt) {
  JoinOptions alone = options(1, 2, free_port());
  alone.join_seconds = 1;
  EXPECT_EQ(message_of(alone), "nobody has served the store of the run at 127.0.0.1:" + std::to_string(alone.port) + " for 1 s");
}

// It listens, and never says anything.
TEST(Store, TellsThatSomethingElseListens) {
  JoinOptions alone = options(1, 2, free_port());
  alone.join_seconds = 1;
  const Listener other = listen_on("127.0.0.1", alone.port, /*everywhere=*/false);
  EXPECT_THAT(message_of(alone), HasSubstr("is not the store of a run"));
}

TEST(Store, NamesTheRanksThatDidNotCome) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int index) {
    JoinOptions two_of_four = options(index == 0 ? 0 : 2, 4, port);
    two_of_four.join_seconds = 1;
    const Store store(two_of_four);
  });
  EXPECT_THAT(said, Each("ranks 1 and 3 of 4 did not come within 1 s"));
}

TEST(Store, NamesTheRankWithAnotherKey) {
  const int port = free_port();
  const auto said = in_threads(3, [&](int rank) {
    JoinOptions joins = options(rank, 3, port);
    joins.key = rank == 1 ? "another" : "the key";
    const Store store(joins);
  });
  EXPECT_THAT(said, Each("rank 1 has another key than rank 0"));
}

TEST(Store, TellsARankOfAnotherNumberOfRanks) {
  const int port = free_port();
  const auto said = in_threads(2, [&](int rank) {
    JoinOptions joins = options(rank, rank == 0 ? 2 : 8, port);
    joins.join_seconds = 1;
    const Store store(joins);
  });
  EXPECT_THAT(said, ElementsAre("rank 1 of 2 did not come within 1 s", "rank 1 was told of 8 ranks, and rank 0 of 2"));
}

TEST(Store, TellsASecondProcessOfTheSameRank) {
  const int port = free_port();
  const auto said = in_threads(3, [&](int index) {
    JoinOptions joins = options(index == 0 ? 0 : 1, 3, port);
    joins.join_seconds = 1;
    joins.key = std::to_string(index);
    const Store store(joins);
  });
  EXPECT_THAT(said, ::testing::Contains("two processes say that they are rank 1"));
}

TEST(Store, ThatOthersCouldReachNeedsAKey) {
  JoinOptions everywhere = options(0, 1, free_port());
  everywhere.several_machines = true;
  EXPECT_THAT(message_of(everywhere), HasSubstr("others than this machine could join the run"));
  JoinOptions elsewhere = options(0, 1, free_port());
  elsewhere.host = "192.0.2.1";  // of no machine: RFC 5737
  EXPECT_THAT(message_of(elsewhere), HasSubstr("it has no key"));
  elsewhere.key = "a key";
  EXPECT_EQ(message_of(elsewhere), "host '192.0.2.1' is not this machine, on which rank 0 runs");
}

TEST(Store, RefusesWhatIsNoRankOrPort) {
  EXPECT_EQ(message_of(options(2, 2, free_port())), "there is no rank 2 of 2 ranks");
  EXPECT_EQ(message_of(options(0, 1, 70000)), "70000 is not a port");
}

TEST(StoreConnection, KeepsWhatIsSetFirst) {
  const Store store(options(0, 1, free_port()));
  const auto connection = store.connect();
  EXPECT_EQ(connection->set_first("key", "one"), "one");
  EXPECT_EQ(connection->set_first("key", "two"), "one");
  EXPECT_EQ(connection->wait_for("key", Clock::now()), "one");
  EXPECT_FALSE(connection->wait_for("another", Clock::now() + std::chrono::milliseconds(20)));
  EXPECT_THAT(connection->values({"key", "key"}), ElementsAre("one", "one"));
  EXPECT_THROW(connection->values({"another"}), InternalError);
}

// A network, or the memory of rank 0, may change a bit; or hand on what another key has.
TEST(StoreConnection, TellsWhatCameDamaged) {
  const int port = free_port();
  const Store store(options(0, 1, port));
  const auto connection = store.connect();
  connection->set("word", "as it was");
  std::vector<uint8_t> bytes = connection->torch_store().get("word");
  connection->torch_store().set("other", bytes);
  bytes.back() ^= 1;
  connection->torch_store().set("word", bytes);
  connection->torch_store().set("short", std::vector<uint8_t>{1});
  connection->torch_store().queuePush("queue", bytes);
  const auto damaged = [port](const std::string& key) {
    return "error: '" + key +
           "' came damaged out of the store of the run, which rank 0 serves at 127.0.0.1:" + std::to_string(port);
  };
  const auto soon = Clock::now() + std::chrono::seconds(5);
  for (const std::string key : {"word", "other", "short"}) {
    EXPECT_THAT(sluice::message_of<UserError>([&] { connection->wait_for(key, soon); }), StartsWith(damaged(key)));
    EXPECT_THAT(sluice::message_of<UserError>([&] { connection->values({key}); }), StartsWith(damaged(key)));
  }
  EXPECT_THAT(sluice::message_of<UserError>([&] { connection->set_first("word", "new"); }), StartsWith(damaged("word")));
  EXPECT_THAT(sluice::message_of<UserError>([&] { connection->pop("queue", 5); }), StartsWith(damaged("queue")));
}

// As where a bit of a key was flipped on its way, or of a length.
TEST(StoreConnection, TellsOfAnswersThatCannotBe) {
  const int port = free_port();
  const Store store(options(0, 1, port));
  const auto connection = store.connect();
  const std::string came = " came damaged out of the store of the run, which rank 0 serves at 127.0.0.1:" + std::to_string(port);
  connection->set("nothing", "");
  const auto soon = Clock::now() + std::chrono::seconds(5);
  EXPECT_THAT(sluice::message_of<UserError>([&] { connection->wait_for("nothing", soon); }),
              StartsWith("error: 'nothing'" + came));
  connection->set("no queue", "a value");
  EXPECT_THAT(sluice::message_of<UserError>([&] { connection->pop("no queue", 5); }),
              AllOf(StartsWith("error: an answer ("), HasSubstr(came)));
}

TEST(StoreConnection, TakesMessagesInTheirOrder) {
  const Store store(options(0, 1, free_port()));
  const auto in = store.connect(), out = store.connect();
  EXPECT_FALSE(in->pop("queue", .01));
  std::jthread sender([&] {
    for (int i = 0; i < 1000; ++i) out->push("queue", std::to_string(i));
  });
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(in->pop("queue", 30), std::to_string(i));
}

TEST(StoreConnection, IsLostWhenRank0Ends) {
  const int port = free_port();
  auto store = std::make_unique<Store>(options(0, 1, port));
  const auto connection = store->connect();
  store.reset();
  try {
    connection->add("count", 1);
    FAIL() << "nobody is there";
  } catch (const StoreLost& error) {
    EXPECT_EQ(error.how(), StoreLost::How::kClosed);
    EXPECT_THAT(error.what(), HasSubstr("rank 0 has closed the connection to 127.0.0.1:" + std::to_string(port)));
  }
}

// A name server, which never answers, of the thread that makes it.
class SilentNameServer {
 public:
  SilentNameServer() : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_TRUE(::bind(socket_, generic, size) == 0 && ::getsockname(socket_, generic, &size) == 0);
    res_init();
    _res.nscount = 1;
    _res.nsaddr_list[0] = address;
  }
  ~SilentNameServer() {
    ::close(socket_);
    res_init();
  }

  bool was_asked() const {
    char one = 0;
    return ::recv(socket_, &one, 1, 0) > 0;
  }

 private:
  int socket_;
};

TEST(StoreConnection, AsksNoNameServer) {
  const SilentNameServer server;
  const Store store(options(0, 1, free_port()));
  EXPECT_FALSE(server.was_asked());
  EXPECT_EQ(_res.nscount, 1) << "others ask as before";
}

TEST(StoreConnection, ThatWaitsCanBeInterrupted) {
  const Store store(options(0, 1, free_port()));
  const auto connection = store.connect();
  std::jthread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    connection->interrupt();
  });
  EXPECT_THROW(connection->pop("queue", 60), StoreLost);
}

}  // namespace
}  // namespace sluice::comm::store_test
