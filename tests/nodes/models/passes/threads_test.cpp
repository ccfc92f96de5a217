#include "nodes/models/passes/threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <thread>

#include "models/kernels/parallel.h"

namespace sluice::nodes::threads_test {
namespace {

using models::loop_threads;

TEST(Threads, EachThreadKeepsItsOwnNumber) {
  int64_t first = 0, second = 0;
  std::thread([&] {
    use_threads(3);
    std::thread([&] {
      use_threads(1);
      second = loop_threads();
    }).join();
    first = loop_threads();
  }).join();
  EXPECT_EQ(first, 3);
  EXPECT_EQ(second, 1);
}

TEST(Threads, OperatorsOfLibTorchStayOnTheirThread) {
  int first = 0, later = 0;
  std::thread([&] {
    use_threads(3);
    first = at::get_num_threads();
    std::thread([&] { later = at::get_num_threads(); }).join();
  }).join();
  EXPECT_EQ(first, 1);
  EXPECT_EQ(later, 1);
}

}  // namespace
}  // namespace sluice::nodes::threads_test
