#include "cli/run/nvtx_ranges.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice::cli::nvtx_ranges_test {
namespace {

namespace fs = std::filesystem;

// A folder that stands for the root of a machine.
class NvtxRanges : public ::testing::Test {
 protected:
  NvtxRanges() {
    std::string pattern = ::testing::TempDir() + "sluice_nvtx_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    root_ = pattern;
  }
  ~NvtxRanges() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(NvtxRanges, AreNotMarkedWithoutADriver) {
  fs::create_directories(root_ / "dev");
  EXPECT_FALSE(nvtx_hooks(root_).has_value());
}

TEST_F(NvtxRanges, AreMarkedWithADriverWhereTheHeadersWereFound) {
  fs::create_directories(root_ / "proc/driver/nvidia");
  EXPECT_EQ(nvtx_hooks(root_).has_value(), SLUICE_HAS_NVTX == 1);
}

TEST_F(NvtxRanges, CanBeMarkedWithoutAToolThatLooks) {
  fs::create_directories(root_ / "dev/nvidiactl");
  const auto hooks = nvtx_hooks(root_);
  if (!hooks) GTEST_SKIP() << "built without NVTX";
  hooks->push("generate");
  hooks->push("train");
  hooks->pop();
  hooks->pop();
}

}  // namespace
}  // namespace sluice::cli::nvtx_ranges_test
