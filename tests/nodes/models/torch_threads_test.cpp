#include "nodes/models/torch_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <thread>

namespace sluice::nodes {
namespace {

TEST(TorchThreads, EachThreadKeepsItsOwnNumber) {
  int first = 0, second = 0;
  std::thread([&] {
    use_threads(3);
    std::thread([&] {
      use_threads(1);
      second = at::get_num_threads();
    }).join();
    first = at::get_num_threads();
  }).join();
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 1);
}

}  // namespace
}  // namespace sluice::nodes
