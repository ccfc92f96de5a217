#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <exception>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "comm/parcels/direct_parcels.h"

// A connection to a rank that takes nothing and does not close it either.
namespace sluice::comm::stalled_link_test {
namespace {

using ::testing::HasSubstr;

TEST(StalledLink, IsNamedWithWhatWasBetweenTheRanks) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
  const Descriptor other(ends[1]);
  std::vector<PeerSocket> peers(2);
  peers[1].socket = Descriptor(ends[0]);
  std::promise<std::string> said;
  {
    DirectParcels parcels(
        {.rank = 0, .size = 2}, std::move(peers),
        [&](const std::exception_ptr& error) {
          try {
            std::rethrow_exception(error);
          } catch (const std::exception& reason) {
            said.set_value(reason.what());
          }
        },
        {}, {}, /*stalled_seconds=*/1);
    parcels.receive(1, {"generate", 12, 7}, 100, [](const engine::Parcel&) { ADD_FAILURE() << "it came"; });
    EXPECT_THAT(said.get_future().get(),
                ::testing::AllOf(HasSubstr("rank 1 has taken nothing for"),
                                 HasSubstr("micro-batch 7 of iteration 12 on edge 'generate' is between it and this rank")));
  }
}

}  // namespace
}  // namespace sluice::comm::stalled_link_test
