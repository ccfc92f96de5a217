#include "tests/fake_device/fake_device.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "tests/models/devices.h"

// That the fake device finds what it is there to find.
namespace sluice::fake::fake_device_test {
namespace {

constexpr int64_t kNumbers = 100;

at::Device device(int number = 0) { return *models::devices::find(number == 0 ? "fake:0" : "fake:1"); }

at::TensorOptions there(int number = 0) { return at::TensorOptions(at::kFloat).device(device(number)); }

at::Tensor pinned(double value) { return at::full({kNumbers}, value, at::TensorOptions(at::kFloat).pinned_memory(true)); }

// In how many of 20 schedules every number is `expected`.
int times_right(const std::function<at::Tensor()>& numbers, double expected) {
  int right = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    set_schedule(seed);
    if (numbers().to(at::kCPU).eq(expected).all().item<bool>()) ++right;
    take_counts();
  }
  set_schedule(1);
  return right;
}

c10::Stream another_stream() { return c10::impl::VirtualGuardImpl(at::kPrivateUse1).getNewStream(device()); }

TEST(FakeDeviceMemory, IsNotTheHosts) {
  const at::Tensor tensor = at::ones({kNumbers}, there());
  EXPECT_EXIT(static_cast<float*>(tensor.data_ptr())[0] = 1, ::testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(std::exit(*static_cast<const float*>(tensor.const_data_ptr()) == 1), ::testing::KilledBySignal(SIGSEGV), "");
}

TEST(FakeDeviceMemory, IsNanUntilItIsWritten) {
  EXPECT_TRUE(at::empty({kNumbers}, there()).isnan().all().item<bool>());
  EXPECT_TRUE(at::empty({kNumbers}, there().dtype(at::kLong)).eq(-1).all().item<bool>());
}

TEST(FakeDeviceMemory, IsUsedAgainAndCounted) {
  take_counts();
  const int64_t before = take_counts().live_bytes;
  const void* const first = at::ones({kNumbers}, there()).const_data_ptr();
  const at::Tensor second = at::empty({kNumbers}, there());
  EXPECT_EQ(second.const_data_ptr(), first);
  EXPECT_EQ(take_counts().peak_bytes - before, 512);
  EXPECT_TRUE(second.isnan().all().item<bool>());
}

TEST(FakeDeviceMemory, Ends) {
  take_counts();
  set_capacity(take_counts().live_bytes + 4096);
  EXPECT_THROW(at::empty({1 << 20}, there()), c10::OutOfMemoryError);
  EXPECT_NO_THROW(at::empty({512}, there()));
  set_capacity(int64_t{1} << 40);
}

TEST(FakeDeviceOperators, TakeNoTensorOfTheHostAndNoneOfAnotherDevice) {
  const at::Tensor here = at::ones({kNumbers}), first = at::ones({kNumbers}, there(0)), second = at::ones({kNumbers}, there(1));
  EXPECT_THROW(first.add(here), c10::Error);
  EXPECT_THROW(first.add(second), c10::Error);
  EXPECT_THROW(first.index_select(0, at::zeros({1}, at::kLong)), c10::Error);
  EXPECT_EQ(first.add(2.5).sum().item<double>(), 3.5 * kNumbers);
}

TEST(FakeDeviceOperators, TellWhoWaitsThatTheyFailed) {
  const at::Tensor outside = at::full({1}, 1000, there().dtype(at::kLong));
  const at::Tensor chosen = at::ones({kNumbers}, there()).index_select(0, outside);
  EXPECT_THROW(chosen.to(at::kCPU), std::exception);
  EXPECT_EQ(at::ones({kNumbers}, there()).sum().item<double>(), kNumbers);
}

TEST(FakeDeviceCopies, BetweenDevicesWaitForBoth) {
  EXPECT_EQ(times_right([] { return at::full({kNumbers}, 3, there(0)).add(1).to(device(1)).add(1); }, 5), 20);
}

TEST(FakeDeviceCopies, OfPinnedMemoryAreMadeLater) {
  const auto copied = [](bool too_early) {
    return [too_early] {
      const at::Tensor host = pinned(3), copy = host.to(device(), /*non_blocking=*/true);
      if (!too_early) copy.sum().item();
      host.fill_(4);
      return copy;
    };
  };
  EXPECT_EQ(times_right(copied(false), 3), 20);
  EXPECT_LT(times_right(copied(true), 3), 20);
}

TEST(FakeDeviceCopies, OfOtherMemoryAreMadeAtOnceAndCounted) {
  take_counts();
  const auto copied = [] {
    const at::Tensor host = at::full({kNumbers}, 3), copy = host.to(device(), /*non_blocking=*/true);
    host.fill_(4);
    return copy;
  };
  EXPECT_EQ(times_right(copied, 3), 20);
  copied();
  EXPECT_EQ(take_counts().pageable_copies, 1);
}

TEST(FakeDeviceCopies, ToPinnedMemoryAreReadTooEarlyWithoutAWait) {
  const auto copied = [](bool waits) {
    return [waits] {
      const at::Tensor there_now = at::full({kNumbers}, 3, there());
      const at::Tensor host = there_now.to(at::kCPU, /*non_blocking=*/true);
      if (waits) there_now.sum().item();
      return host.clone();
    };
  };
  EXPECT_EQ(times_right(copied(true), 3), 20);
  EXPECT_LT(times_right(copied(false), 3), 20);
}

TEST(FakeDeviceCopies, ToTheHostAreCountedWithTheirBytes) {
  const at::Tensor tensor = at::ones({kNumbers}, there());
  take_counts();
  tensor.add(1).to(device(1)).to(at::kDouble);
  const Counts between_devices = take_counts();
  EXPECT_EQ(between_devices.copies_to_host, 0);
  tensor.to(at::kCPU);
  tensor.narrow(0, 0, 3).to(at::kCPU);
  const Counts counts = take_counts();
  EXPECT_EQ(counts.copies_to_host, 2);
  EXPECT_EQ(counts.bytes_to_host, 4 * kNumbers + 4 * 3);
}

TEST(FakeDeviceStreams, NeedAnEventBetweenThem) {
  const auto made_and_read = [](bool with_event) {
    return [with_event] {
      const c10::Stream other = another_stream(), mine = c10::impl::VirtualGuardImpl(at::kPrivateUse1).getStream(device());
      const at::Tensor zeros = at::zeros({kNumbers}, there());
      zeros.sum().item();
      {
        const c10::StreamGuard on_other(other);
        zeros.add_(3);
      }
      c10::Event event(at::kPrivateUse1);
      if (with_event) {
        event.record(other);
        event.block(mine);
      }
      const at::Tensor read = zeros.add(1).to(at::kCPU);
      other.synchronize();
      return read;
    };
  };
  EXPECT_EQ(times_right(made_and_read(true), 4), 20);
  EXPECT_LT(times_right(made_and_read(false), 4), 20);
}

TEST(FakeDeviceStreams, NeedToSayWhatMemoryTheyUse) {
  const auto freed_while_read = [](bool said) {
    return [said] {
      const c10::Stream other = another_stream();
      at::Tensor read, held = at::full({kNumbers}, 3, there());
      held.sum().item();
      {
        const c10::StreamGuard on_other(other);
        read = held.add(1);
      }
      if (said) held.record_stream(other);
      held.reset();
      at::full({kNumbers}, 7, there()).sum().item();  // takes its memory
      other.synchronize();
      return read;
    };
  };
  EXPECT_EQ(times_right(freed_while_read(true), 4), 20);
  EXPECT_LT(times_right(freed_while_read(false), 4), 20);
}

TEST(FakeDeviceEvents, TellTheTimeBetweenThem) {
  device();
  c10::Event begin(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT), end(at::kPrivateUse1, c10::EventFlag::BACKEND_DEFAULT);
  const c10::Stream stream = another_stream();
  const c10::StreamGuard there_now(stream);
  begin.record(stream);
  const at::Tensor sum = at::ones({kNumbers}, there()).sum();
  end.record(stream);
  sum.item();
  EXPECT_GE(begin.elapsedTime(end), 0);
}

}  // namespace
}  // namespace sluice::fake::fake_device_test
