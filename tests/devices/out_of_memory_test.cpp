#include "engine/memory/out_of_memory.h"

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "models/portable/decoder.h"
#include "tests/fake_device/fake_device.h"
#include "tests/models/dense_reference.h"
#include "tests/models/devices.h"

// What a device without room says is known as that, so that a run tells where its memory went.
namespace sluice::models::out_of_memory_test {
namespace {

std::string refusal(const std::function<void()>& work) {
  fake::set_capacity(fake::take_counts().live_bytes + (1 << 20));
  std::string text = "nothing failed";
  try {
    work();
  } catch (const std::exception& error) {
    text = std::string(engine::is_out_of_memory(error) ? "" : "not known: ") + error.what();
  }
  fake::set_capacity(int64_t{1} << 40);
  return text;
}

TEST(FakeDeviceOutOfMemory, IsKnownOfTensors) {
  const at::Device device = *devices::find("fake:0");
  const std::string text = refusal([&] { at::empty({1 << 20}, at::TensorOptions(at::kFloat).device(device)); });
  EXPECT_THAT(text, ::testing::StartsWith("fake device out of memory"));
}

TEST(FakeDeviceOutOfMemory, IsKnownOfTheKvCacheAndNamesTheDevice) {
  const at::Device device = *devices::find("fake:1");
  const std::string text =
      refusal([&] { portable::Decoder(reference::small_config(), {.device = device, .block_size = 16, .blocks = 1 << 10}); });
  EXPECT_THAT(text, ::testing::StartsWith("error: there is no memory for a KV cache of 3.1 MB on fake:1\n"));
}

// A mistake of another kind is not told as one.
TEST(FakeDeviceOutOfMemory, IsNotWhatElseFails) {
  const at::Device missing(at::kPrivateUse1, 5);
  devices::find("fake:0");
  const std::string text = refusal([&] { portable::Decoder(reference::small_config(), {.device = missing, .blocks = 8}); });
  EXPECT_THAT(text, ::testing::StartsWith("not known: there is no device"));
}

}  // namespace
}  // namespace sluice::models::out_of_memory_test
