#include "models/memory/tensor_memory.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <thread>

namespace sluice::models::tensor_memory_test {
namespace {

at::Tensor bytes(int64_t count) { return at::empty({count}, at::kByte); }

// On a thread of its own: a thread is counted to its end.
template <class Work>
void on_watched_thread(TensorMemory& memory, Work work) {
  std::thread([&] {
    memory.watch_this_thread();
    work();
  }).join();
}

TEST(TensorMemory, LiveBytesFollowTheTensorsAndThePeakStaysUntilItIsTaken) {
  TensorMemory memory;
  on_watched_thread(memory, [&] {
    const at::Tensor kept = bytes(1000);
    {
      const at::Tensor first = bytes(200);
      EXPECT_EQ(memory.live(), 1200);
    }
    const at::Tensor second = bytes(30);
    EXPECT_EQ(memory.live(), 1030);
    EXPECT_EQ(memory.take_peak(), 1200);
    EXPECT_EQ(memory.take_peak(), 1030);
  });
  EXPECT_EQ(memory.live(), 0);
}

TEST(TensorMemory, ThreadsAreCountedTogether) {
  TensorMemory memory;
  at::Tensor made_here;
  on_watched_thread(memory, [&] { made_here = bytes(500); });
  on_watched_thread(memory, [&] {
    const at::Tensor another = bytes(70);
    EXPECT_EQ(memory.live(), 570);
    made_here.reset();
    EXPECT_EQ(memory.live(), 70);
  });
}

TEST(TensorMemory, AThreadThatIsNotWatchedDoesNotCount) {
  TensorMemory memory;
  at::Tensor unseen = bytes(500);
  EXPECT_EQ(memory.live(), 0);
  on_watched_thread(memory, [&] { unseen.reset(); });
  EXPECT_EQ(memory.live(), 0);
}

}  // namespace
}  // namespace sluice::models::tensor_memory_test
