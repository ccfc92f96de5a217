#include "base/process/free_port.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::free_port_test {
namespace {

TEST(FreePort, IsNoneThatAConnectionMayTakeWhereThereAreOthers) {
  if (first_given_port() < 20'000) {
    EXPECT_GT(free_port(), 0);
    return;
  }
  std::set<int> ports;
  for (int i = 0; i < 50; ++i) {
    ports.insert(free_port());
    EXPECT_GE(*ports.begin(), 10'000);
    EXPECT_LT(*ports.rbegin(), first_given_port());
  }
  EXPECT_GT(ports.size(), 40u);  // others look for one at the same time
}

}  // namespace
}  // namespace sluice::free_port_test
