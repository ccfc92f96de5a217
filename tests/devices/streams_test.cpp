#include "models/devices/streams.h"

#include <ATen/ops/full.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "models/memory/host_copy.h"
#include "tests/models/devices.h"

namespace sluice::models::streams_test {
namespace {

constexpr int64_t kNumbers = 1000;
constexpr int kTimes = 20;

class Streams : public devices::OnDevice {
 protected:
  at::Tensor full(double value) const { return at::full({kNumbers}, value, at::TensorOptions(at::kFloat).device(device())); }

  c10::Stream current() const { return c10::impl::VirtualGuardImpl(device().type()).getStream(device()); }

  // On a thread that has a stream of its own.
  void on_own_stream(const std::function<void()>& work, StreamOrder order = StreamOrder::kUsual) const {
    std::jthread([&] {
      use_own_streams({device().str()}, order);
      work();
    });
  }

  // Under another schedule each time, where the device has several.
  void many_times(const std::function<void(int time)>& work) const {
    for (int time = 1; time <= kTimes; ++time) {
      fake::set_schedule(static_cast<uint64_t>(time));
      work(time);
    }
    fake::set_schedule(1);
  }
};

TEST_P(Streams, AreThoseOfAThread) {
  const c10::Stream before = current();
  on_own_stream([&] {
    const c10::Stream first = current();
    EXPECT_NE(first, before);
    EXPECT_NE(current_stream_on(device()), nullptr);
    on_own_stream([&] { EXPECT_NE(current(), first); }, StreamOrder::kFirst);
    EXPECT_EQ(current(), first);
  });
  EXPECT_EQ(current(), before);
  EXPECT_EQ(current_stream_on(device()), nullptr);
}

TEST_P(Streams, BeginBehindWhatWasAskedForBefore) {
  many_times([&](int time) {
    const at::Tensor made = full(0).add(time);
    at::Tensor read;
    on_own_stream([&] { read = made.to(at::kCPU); });
    EXPECT_TRUE(read.eq(time).all().item<bool>());
  });
}

TEST_P(Streams, GiveOthersWhatIsFinished) {
  const at::Tensor shared = full(0);
  many_times([&](int time) {
    on_own_stream([&] {
      shared.fill_(time);
      finish_work_on(device());
      std::jthread([&] { EXPECT_TRUE(shared.to(at::kCPU).eq(time).all().item<bool>()); });
    });
  });
}

// What comes through pinned memory, in more parts than that has, while the stream is behind.
TEST_P(Streams, AreCopiedFromInOrder) {
  constexpr int64_t kMany = (int64_t{14} << 20) + 5;
  HostCopy copy(kMany);
  const at::Tensor buffer = at::full({kMany}, 0.0, at::TensorOptions(at::kFloat).device(device()));
  for (int time = 1; time <= 3; ++time) {
    on_own_stream([&] {
      buffer.fill_(time);
      buffer.narrow(0, kMany - 1, 1).fill_(-time);
      copy.copy({buffer.narrow(0, 0, 1000), buffer.narrow(0, 1000, kMany - 1000)});
      buffer.fill_(0);
    });
    EXPECT_TRUE(copy.tensor().narrow(0, 0, kMany - 1).eq(time).all().item<bool>());
    EXPECT_EQ(copy.tensor()[kMany - 1].item<float>(), -time);
  }
}

TEST(StreamsOfTheCpu, AreNone) {
  use_own_streams({"cpu"}, StreamOrder::kFirst);
  finish_work_on(at::kCPU);
  EXPECT_EQ(current_stream_on(at::kCPU), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Devices, Streams, ::testing::Values("cuda:0"), devices::PlainName());
INSTANTIATE_TEST_SUITE_P(FakeDevice, Streams, ::testing::ValuesIn(devices::kFake), devices::PlainName());

}  // namespace
}  // namespace sluice::models::streams_test
