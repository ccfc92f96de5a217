#include "comm/gloo_watch.h"

#include <ATen/ops/zeros.h>
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <vector>

#include "base/error.h"
#include "comm/process_group.h"

namespace sluice::comm::gloo_watch_test {
namespace {

using namespace std::chrono_literals;

// The head of a message of Gloo.
struct Head {
  uint64_t bytes = sizeof(Head), operation = 1 /* to a buffer of the receiver */, slot = 0, offset = 0, length = 0, there = 0;
};

// The two ends of the only connection over TCP of this process.
std::vector<int> connection() {
  constexpr int kMostDescriptors = 1024;
  std::vector<int> ends;
  for (int descriptor = 3; descriptor < kMostDescriptors; ++descriptor) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    const bool is_connected = ::getpeername(descriptor, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
    if (is_connected && peer.sin_family == AF_INET) ends.push_back(descriptor);
  }
  return ends;
}

// Two ranks, of which one gets a message for which nobody waits, as when a bit of its slot was flipped. Waits for: the process to
// end by it. Ends when: it has.
void get_a_damaged_head() {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  const GlooWatch watch(
      [](const std::exception_ptr& error) {
        std::fputs("the run has heard\n", stderr);
        try {
          std::rethrow_exception(error);
        } catch (const std::exception& thrown) {
          return (is_of_gloo(thrown) ? "damaged: " : "something else: ") + std::string(thrown.what());
        }
      },
      50ms);
  std::array<std::shared_ptr<c10d::Backend>, 2> ranks;
  {
    const std::jthread other([&] { ranks[1] = connect_ranks(*store, "ranks", {1, 2}); });
    ranks[0] = connect_ranks(*store, "ranks", {0, 2});
  }
  const Head head{.slot = 77};
  for (const int end : connection()) {
    if (::send(end, &head, sizeof head, MSG_NOSIGNAL) < 0) std::perror("send");
  }
  std::this_thread::sleep_for(60s);  // never reached unless something hangs
}

TEST(GlooWatch, WhatGlooThrowsOnItsOwnThreadEndsTheRunAndIsSaid) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(get_a_damaged_head(), ::testing::ExitedWithCode(1), "the run has heard\ndamaged: .*localPendingRecv");
}

// Nobody expects anything of Gloo's here.
TEST(GlooWatch, WhatElseIsThrownStillAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const GlooWatch watch([](const std::exception_ptr&) { return std::string("heard"); }, 1ms);
        std::thread([] { throw InternalError("a bug"); }).join();
      },
      ::testing::KilledBySignal(SIGABRT), "");
}

}  // namespace
}  // namespace sluice::comm::gloo_watch_test
