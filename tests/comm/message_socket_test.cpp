#include "comm/parcels/message_socket.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <vector>

#include "base/error.h"
#include "comm/parcels/shared_memory.h"

namespace sluice::comm::message_socket_test {
namespace {

using ::testing::HasSubstr;

class Taken final : public MessageTaker {
 public:
  std::span<std::byte> place_of(const Message&) override { return {}; }
  void take(const Message& message) override { messages.push_back(message); }

  std::vector<Message> messages;
};

// For as long as it lives this process gets no descriptor more than it has.
class NoMoreDescriptors {
 public:
  NoMoreDescriptors() {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit none = before_;
    none.rlim_cur = 0;
    ::setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoMoreDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

class MessageSocketTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> pair{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    sender_ = std::make_unique<MessageSocket>(Descriptor(pair[0]), 4);
    receiver_ = std::make_unique<MessageSocket>(Descriptor(pair[1]), 3);
  }

  void send_memory() {
    sender_->push({.message = {.kind = Message::Kind::kGrant, .block = 7, .is_new_block = true},
                   .descriptor = memory_.descriptor(),
                   .body = {}});
    sender_->write();
  }

  SharedMemory memory_{100};
  std::unique_ptr<MessageSocket> sender_, receiver_;
  Taken taken_;
};

TEST_F(MessageSocketTest, PassesADescriptorWithItsMessage) {
  memory_.data()[5] = std::byte{9};
  send_memory();
  receiver_->read(taken_);
  ASSERT_EQ(taken_.messages.size(), 1);
  EXPECT_EQ(taken_.messages[0].block, 7);
  const SharedMemory theirs(receiver_->take_descriptor(), memory_.bytes());
  EXPECT_EQ(theirs.data()[5], std::byte{9});
}

// The system drops it then, and gives the message alone.
TEST_F(MessageSocketTest, SaysThatThereIsNoDescriptorLeftForOneThatComes) {
  send_memory();
  const NoMoreDescriptors none;
  try {
    receiver_->read(taken_);
    FAIL() << "the descriptor is lost";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("this process has no descriptor left for memory that rank 3 shares with it"));
    EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
  }
}

}  // namespace
}  // namespace sluice::comm::message_socket_test
