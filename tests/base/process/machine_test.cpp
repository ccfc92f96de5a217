#include "base/process/machine.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <string>
#include <thread>

namespace sluice::machine_test {
namespace {

/// A root folder with the files that tell what a process may use.
class Machine : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  const std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) /
                                      ("machine_" + std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Machine, HasTheMemoryThatTheKernelSays) {
  file("proc/meminfo", "MemTotal:       1000 kB\nMemFree:         100 kB\n");
  EXPECT_EQ(memory_of_machine(root_), 1024000);
}
TEST_F(Machine, HasLessMemoryInAControlGroup) {
  file("proc/meminfo", "MemTotal:       1000 kB\n");
  file("proc/self/cgroup", "0::/jobs/one\n");
  file("sys/fs/cgroup/jobs/memory.max", "4096\n");
  file("sys/fs/cgroup/jobs/one/memory.max", "max\n");
  EXPECT_EQ(memory_of_machine(root_), 4096);
}
TEST_F(Machine, HasLessMemoryInAControlGroupOfVersionOne) {
  file("proc/meminfo", "MemTotal:       1000 kB\n");
  file("proc/self/cgroup", "5:cpu:/a\n4:memory:/docker/ab\n");
  file("sys/fs/cgroup/memory/memory.limit_in_bytes", "8192\n");
  EXPECT_EQ(memory_of_machine(root_), 8192);
}
TEST_F(Machine, MayNotSayHowMuchMemoryItHas) { EXPECT_EQ(memory_of_machine(root_), 0); }

TEST_F(Machine, NamesItsSteadyClock) {
  EXPECT_EQ(steady_clock_name(root_), "");
  file("proc/sys/kernel/random/boot_id", "1a6c-04\n");
  EXPECT_EQ(steady_clock_name(root_), "1a6c-04 ");
  std::filesystem::create_directories(root_ / "proc/self/ns");
  std::filesystem::create_symlink("time:[40]", root_ / "proc/self/ns/time");
  EXPECT_EQ(steady_clock_name(root_), "1a6c-04 time:[40]");
}

TEST_F(Machine, HasTheCoresOfTheProcessesAffinity) {
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(available_cores(root_), CPU_COUNT(&all));
  CPU_ZERO(&one);
  for (int core = 0; CPU_COUNT(&one) == 0; ++core) {
    if (CPU_ISSET(core, &all)) CPU_SET(core, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_cores(root_), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

TEST_F(Machine, AThreadIsKeptToItsCoresAlone) {
  const std::vector<int> all = cores_of_affinity();
  std::thread([&] {
    keep_to_cores({all.back()});
    EXPECT_EQ(cores_of_affinity(), std::vector<int>{all.back()});
    keep_to_cores({});
    EXPECT_EQ(available_cores(root_), 1);
  }).join();
  EXPECT_EQ(cores_of_affinity(), all);
}

// A quota of any group above counts; half a core is one.
TEST_F(Machine, HasFewerCoresInAControlGroup) {
  file("proc/self/cgroup", "0::/jobs/one\n");
  file("sys/fs/cgroup/jobs/cpu.max", "50000 100000\n");
  file("sys/fs/cgroup/jobs/one/cpu.max", "max 100000\n");
  EXPECT_EQ(available_cores(root_), 1);
}

TEST_F(Machine, HasFewerCoresInAControlGroupOfVersionOne) {
  file("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:cpuset:/b\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "100000\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_cores(root_), 1);
}

TEST_F(Machine, HasAllCoresWhereNoGroupLimitsThem) {
  const int64_t all = available_cores(root_);
  file("proc/self/cgroup", "0::/jobs\n5:cpu,cpuacct:/a\n");
  file("sys/fs/cgroup/jobs/cpu.max", "max 100000\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1\n");
  file("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_cores(root_), all);
}

}  // namespace
}  // namespace sluice::machine_test
