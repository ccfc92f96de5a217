#pragma once

#include <ATen/Context.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "models/cuda/device.h"
#include "models/devices/device_named.h"
#include "tests/fake_device/fake_device.h"

/// Tests that run on every device: those of one that the machine lacks are skipped.
namespace sluice::models::devices {

inline constexpr const char* kNames[] = {"cpu", "cuda:0"};
inline constexpr const char* kFake[] = {"fake:0"};  // tests/fake_device/

/// Nothing: this machine, or its LibTorch, lacks it.
inline std::optional<at::Device> find(const char* name) {
  if (std::string_view(name).starts_with("fake:")) fake::install();
  const at::Device device = device_named(name).value();
  if (device.is_cuda() && (missing_gpu(device.index()) || !at::hasCUDA())) return std::nullopt;
  return device;
}

/// "cuda_0": names of tests have no colon.
inline std::string plain(std::string name) {
  for (char& c : name) c = c == ':' ? '_' : c;
  return name;
}

struct PlainName {
  template <class Info>
  std::string operator()(const Info& info) const {
    return plain(info.param);
  }
};

/// Of a pair of what has a name, and a device: "small_cuda_0".
struct NameOfCase {
  template <class Info>
  std::string operator()(const Info& info) const {
    return std::string(std::get<0>(info.param).name) + "_" + plain(std::get<1>(info.param));
  }
};

class OnDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!device_) GTEST_SKIP() << "this machine has no " << GetParam();
  }
  at::Device device() const { return *device_; }

 private:
  std::optional<at::Device> device_ = find(GetParam());
};

/// Loads the CUDA part of LibTorch where there is a GPU, and elsewhere registers the fake devices: before the program's first
/// tensor. LibTorch takes a fake device for what pins memory, so tests of both kinds run in processes of their own, as ctest has
/// it.
class AllDevices : public testing::Environment {
 public:
  void SetUp() override {
    if (missing_gpu(0)) return fake::install();
    try {
      use_cuda();
    } catch (const UserError&) {
      // Without it find() finds no GPU.
    }
  }
};

inline testing::Environment* const kAllDevices = testing::AddGlobalTestEnvironment(new AllDevices);

}  // namespace sluice::models::devices
